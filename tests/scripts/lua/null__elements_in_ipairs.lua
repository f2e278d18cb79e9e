-- value: [1, 2, 3, 4]
-- value: 2
-- calls: echo
local list = tools.echo{ value = { json.null, "b", json.null, "d" } }
local indexes, present = {}, 0
for i, v in ipairs(list) do
  indexes[#indexes + 1] = i
  if v then present = present + 1 end
end
return indexes, present
