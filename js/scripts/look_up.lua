-- Goes through every table, and looks each key up: a text as another string with the same bytes.
local seen, todo, count = {}, {debug.getregistry(), _G}, 0
while #todo > 0 do
  local at = table.remove(todo)
  if not seen[at] then
    seen[at] = true
    if type(at) == "table" then
      todo[#todo + 1] = debug.getmetatable(at)
      for key, value in next, at do
        local same = type(key) == "string" and table.concat({key:sub(1, 1), key:sub(2)}) or key
        assert(rawequal(rawget(at, same), value), "not found: " .. tostring(key))
        count = count + 1
        for _, each in next, {key, value} do
          if type(each) == "table" or type(each) == "function" then todo[#todo + 1] = each end
        end
      end
    else
      for place = 1, 255 do
        local name, value = debug.getupvalue(at, place)
        if not name then break end
        if type(value) == "table" or type(value) == "function" then todo[#todo + 1] = value end
      end
    end
  end
end
assert(count > 500, "too few: " .. count)
