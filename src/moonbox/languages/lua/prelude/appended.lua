-- Tables that a script appends to: `t = {}` with `t[#t + 1] = x` or `table.insert(t, x)` anywhere in its text. They are lists, also when
-- nothing was appended. Only the text and its names decide, so that a replay comes to the same.
return function()
  local find, match, gsub, sub = string.find, string.match, string.gsub, string.sub
  local rep, reverse, concat = string.rep, string.reverse, table.concat
  local LONGEST = 100000 -- bytes of a script; this is done before its clock runs, in a time that grows with its length alone

  -- Where the string ends that begins with this quote; nil where it does not end.
  local function string_end(source, quote, at)
    local stops = "[\\" .. quote .. "]"
    repeat
      at = find(source, stops, at + 1)
      if not at then return nil end
      local escapes = sub(source, at, at) == "\\"
      if escapes then at = at + 1 end
    until not escapes
    return at
  end

  -- The script with blanks for its comments and quotes for all of its strings, so that every place stays; nil where one does not end.
  local function bare(source)
    local parts, written, at = {}, 1, 1
    while true do
      at = find(source, "[%-%[\"']", at)
      if not at then break end
      local first = sub(source, at, at)
      local is_comment = first == "-" and sub(source, at + 1, at + 1) == "-"
      local level = (is_comment or first == "[") and match(source, "^%[(=*)%[", is_comment and at + 2 or at)
      local last = at
      if level then
        _, last = find(source, "]" .. level .. "]", at, true)
      elseif is_comment then
        last = (find(source, "\n", at, true) or #source + 1) - 1
      elseif first == '"' or first == "'" then
        last = string_end(source, first, at)
      end
      if not last then return nil end
      if is_comment or level or first == '"' or first == "'" then
        parts[#parts + 1] = sub(source, written, at - 1)
        parts[#parts + 1] = rep(is_comment and " " or '"', last - at + 1)
        written = last + 1
      end
      at = last + 1
    end
    return written == 1 and source or concat(parts) .. sub(source, written)
  end

  -- The last name of `a.b.c`; nil where that is no path of names.
  local function last_name(path)
    local short = gsub(path, "%s*([%s.])%s*", "%1")
    return match(short, "^[%w_.]+%s?$") and not find(short, "..", 1, true) and match(short, "([%a_][%w_]*)%s?$")
  end

  -- `backwards` is the text from its end.
  local function appended_in(text, backwards)
    local names, size, at = {}, #text, 0
    while true do
      at = find(text, "#", at + 1, true)
      if not at then break end
      local name = match(backwards, "^%s*%[%s*([%w_]+)", size - at + 2)
      local path = name and match(text, "^%s*([%a_][%w_.%s]*)%+%s*1%s*%]%s*=", at + 1)
      name = path and reverse(name)
      if path and last_name(path) == name then names[name] = true end
    end
    at = 0
    while true do
      at = find(text, "insert", at + 1, true)
      if not at then break end
      local starts = at == 1 or find(text, "^[^%w_]", at - 1)
      local path = starts and match(text, "^insert%s*%(%s*([%a_][%w_.%s]*),", at)
      local name = path and last_name(path)
      if name then names[name] = true end
    end
    return next(names) and names
  end

  -- The source with `call` instead of the `{}` of each such table; nil where it has none.
  return function(source, call)
    if #source > LONGEST or not find(source, "{%s*}") or not (find(source, "#", 1, true) or find(source, "insert", 1, true)) then return nil end
    local text = bare(source)
    local backwards = text and reverse(text)
    local names = text and appended_in(text, backwards)
    if not names then return nil end
    local size, parts, written, at = #text, {}, 1, 1
    while true do
      local equals, _, value, after = find(text, "=%s*(){%s*}()", at)
      if not equals then break end
      at = after
      -- Before the sign, the names that get these values, from the last to the first.
      local targets, name, place = {}, match(backwards, "^%s*([%w_]*[%a_])%f[^%w_]()", size - equals + 2)
      while name do
        targets[#targets + 1] = reverse(name)
        name, place = match(backwards, "^%s*,%s*([%w_]*[%a_])%f[^%w_]()", place)
      end
      if not find(text, "^%s*,%s*{", after) then targets = { targets[1] } end -- a field after others in a constructor
      for index = #targets, 1, -1 do
        if names[targets[index]] then
          parts[#parts + 1] = sub(source, written, value - 1) .. call
          written = after
        end
        value, after = match(text, "^%s*,%s*(){%s*}()", after)
        if not value then break end
        at = after
      end
    end
    if written == 1 then return nil end
    return concat(parts) .. sub(source, written)
  end
end
