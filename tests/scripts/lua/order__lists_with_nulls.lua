-- value: "-1 1 2 3 4 x y "
-- value: "1 4 "
-- value: "1 2 3 "
local function names(...)
  local out = ""
  for key in ... do out = out .. key .. " " end
  return out
end
local list = json.decode("[1, null, 3, null, 5]")
list[5], list.y, list.x, list[-1] = nil, 1, 2, 3
local other, third = json.decode("[1, null, null, 4]"), json.decode("[1, null, 3]")
return names(pairs(list)), names(next, other), names(pairs(third))
