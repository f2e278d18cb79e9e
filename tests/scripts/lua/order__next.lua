-- value: ["a", 1, null, "b", null, "c"]
-- value: [1, 2, "x"]
-- value: null
-- value: "invalid key to 'next'"
local t = { c = 3, a = 1, b = 2 }
local first, value = next(t)
local list = { 1, 2, x = 3 }
local _, problem = pcall(next, t, "zz")
return array { first, value, next({}), (next(t, "a")), (next(t, "c")), (next(t, "b")) },
  array { (next(list)), (next(list, 1)), (next(list, 2)) }, next(list, "x"),
  (problem:gsub("^.-: ", ""))
