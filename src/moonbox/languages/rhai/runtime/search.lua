-- Search in text that takes no more time than the text is long.
return function(R, lib, host)
  local find, sub, byte = lib.string.find, lib.string.sub, lib.string.byte

  local function find_long(text, what, from)
    local size, same = #what, { [0] = 0 }
    for i = 2, size do
      local k = same[i - 1] or 0
      local here = byte(what, i)
      while k > 0 and byte(what, k + 1) ~= here do k = same[k] or 0 end
      same[i] = byte(what, k + 1) == here and k + 1 or 0
    end
    local k = 0
    for i = from, #text do
      local here = byte(text, i)
      while k > 0 and byte(what, k + 1) ~= here do k = same[k] or 0 end
      if byte(what, k + 1) == here then k = k + 1 end
      if k == size then return i - size + 1, i end
    end
    return nil
  end
  -- The first and last byte of a part. Lua's own search takes the product of both sizes when both repeat themselves, and
  -- nothing can interrupt it.
  local function find_text(text, what, from)
    if #text * #what < 200000000 then return find(text, what, from, true) end
    return find_long(text, what, from)
  end
  R.find_text = find_text

  local function without(text, what)
    if what == "" then return text end
    local parts, from = {}, 1
    while true do
      local start, stop = find_text(text, what, from)
      if not start then break end
      parts[#parts + 1] = sub(text, from, start - 1)
      from = stop + 1
    end
    parts[#parts + 1] = sub(text, from)
    return lib.table.concat(parts)
  end
  R.without = without
end
