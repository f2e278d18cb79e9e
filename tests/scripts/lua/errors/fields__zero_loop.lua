-- error: runtime
-- line: 9
-- message: attempt to index a nil value (field '?')
-- hint: lists start at 1; write: for i = 1, #list do

local list = {{n = 1}, {n = 2}}
local sum = 0
for i = 0, #list - 1 do
  sum = sum + list[i].n
end
return sum
