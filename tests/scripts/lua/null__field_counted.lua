-- value: 2
-- value: 2
-- value: 2
-- value: 2
-- calls: echo
local people = tools.echo{ value = {
  { name = "a", manager = json.null }, { name = "b", manager = "a" }, { name = "c", manager = json.null }, { name = "d", manager = "a" },
} }
local counts = { 0, 0, 0, 0 }
for _, r in ipairs(people) do
  if r.manager then counts[1] = counts[1] + 1 end
  if r.manager ~= nil then counts[2] = counts[2] + 1 end
  if not r.manager then counts[3] = counts[3] + 1 end
  if r.manager == null then counts[4] = counts[4] + 1 end
end
return table.unpack(counts)
