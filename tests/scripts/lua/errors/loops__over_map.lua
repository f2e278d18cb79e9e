-- error: runtime
-- line: 7
-- message: attempt to call a table value (for iterator)
-- hint: loop over a list with ipairs, over a map with pairs; write: for k, v in pairs(t) do

local t = {a = 1}
for k, v in t do
  print(k)
end
