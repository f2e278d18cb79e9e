-- value: 7
-- value: 11
-- value: 2
-- value: null
-- value: 3
local s = "hello world"
local a, b = s:find("world")
return a, b, (s:find("e")), s:find("xyz"), (("a.b"):find("b", 1, true))
