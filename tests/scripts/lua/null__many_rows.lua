-- value: [20, 10]
-- value: true
-- calls: echo
local given = {}
for i = 1, 20 do given[i] = { id = i, boss = i % 2 == 0 and "x" or json.null, tag = json.null } end
local rows = tools.echo{ value = given }
local bosses, same = 0, true
for i, row in ipairs(rows) do
  if row.boss then bosses = bosses + 1 end
  same = same and json.encode(row) == json.encode(given[i])
end
return { #rows, bosses }, same and json.encode(rows) == json.encode(given)
