-- error: runtime
-- line: 8
-- message: invalid key to 'next'
-- hint: do not add fields to a table during pairs: collect the keys in a list first

local t = {}
for i = 1, 100 do t["k" .. i] = true end
for k in pairs(t) do
  t[k] = nil
  for i = 1, 1000 do t[k .. i] = true end
end
