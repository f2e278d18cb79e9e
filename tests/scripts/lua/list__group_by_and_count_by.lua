-- prints: "{\"a\":[2,4],\"b\":[1,3]}\t{\"1.5\":1,\"2.5\":2,\"null\":1}\t{\"false\":2,\"true\":2}\n"
-- prints: "[{\"key\":\"b\",\"value\":2},{\"key\":\"a\",\"value\":2}]\t[\"b\",\"a\"]\t[2,2]\n"
-- value: ["b", "c", "d"]
local rows = json.decode('[{"id":1,"s":"b","t":2.5},{"id":2,"s":"a","t":null},{"id":3,"s":"b","t":1.5},{"id":4,"s":"a","t":2.5}]')
local groups = list.group_by(rows, "s")
for name, group in pairs(groups) do groups[name] = list.map(group, "id") end
print(groups, list.count_by(rows, "t"), list.count_by(rows, function(row) return row.id > 2 end))
local counts = list.count_by(rows, "s")
print(list.entries(counts), list.keys(counts), list.values(counts))
counts.a, counts.d, counts.c = nil, 1, 1
return list.keys(counts)
