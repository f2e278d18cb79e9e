-- calls: echo echo echo echo
-- value: ["d", "a", "b", "c"]
local wanted, seen = { c = 1, b = 2, a = 3, [4] = "d" }, array {}
for key, value in pairs(wanted) do seen[#seen + 1] = tools.echo { value = type(key) == "number" and value or key } end
return seen
