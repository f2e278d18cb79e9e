-- prints: "-3 0 1 2 10 -1.5 1.5 1e+300 A a a\u0000 ab b é false true null\n"
-- prints: "-3 0 1 2 10 -1.5 1.5 1e+300 A a a\u0000 ab b é false true null\n"
local t = { b = 1, ab = 1, a = 1, A = 1, ["a\0"] = 1, ["é"] = 1, [10] = 1, [2] = 1, [1] = 1, [0] = 1, [-3] = 1, [1.5] = 1, [1e300] = 1,
  [-1.5] = 1, [true] = 1, [false] = 1, [json.null] = 1 }
local function names(...)
  local out = {}
  for key in ... do out[#out + 1] = tostring(key) end
  print(table.concat(out, " "))
end
names(pairs(t))
names(next, t)
