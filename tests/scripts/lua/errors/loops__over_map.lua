-- error: runtime
-- line: 7
-- message: attempt to call a table value (for iterator)
-- hint: a loop needs ipairs around a list, and pairs around an object; write: for k, v in pairs(t) do

local t = {a = 1}
for k, v in t do
  print(k)
end
