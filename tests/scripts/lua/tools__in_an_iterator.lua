-- value: [2, 3, 4]
-- calls: add add add
local function each(list)
  local i = 0
  return function()
    i = i + 1
    if list[i] then return tools.add(list[i]) end
  end
end
local out = {}
for v in each({ 1, 2, 3 }) do out[#out + 1] = v end
return out
