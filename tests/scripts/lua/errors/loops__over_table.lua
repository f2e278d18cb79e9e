-- error: runtime
-- line: 7
-- message: attempt to call a table value (for iterator)
-- hint: loop over a list with ipairs, over a map with pairs; write: for _, x in ipairs(list) do

local list = {1, 2}
for x in list do
  print(x)
end
