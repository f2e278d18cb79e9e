-- error: runtime
-- line: 7
-- message: attempt to call a table value (for iterator)
-- hint: a loop needs ipairs around a list, and pairs around an object; write: for _, x in ipairs(list) do

local list = {1, 2}
for x in list do
  print(x)
end
