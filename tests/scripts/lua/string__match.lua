-- value: "2024"
-- value: "05"
-- value: "key"
-- value: "value"
local y, m = ("2024-05"):match("(%d+)-(%d+)")
local k, v = ("key = value"):match("^(%w+)%s*=%s*(%w+)$")
return y, m, k, v
