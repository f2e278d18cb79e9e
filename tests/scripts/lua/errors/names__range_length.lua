-- error: runtime
-- line: 7
-- message: attempt to call a nil value (global 'len')
-- hint: Lua counts in the loop's header; write: for i = 1, #list do

local list = {1, 2}
for i in range(len(list)) do
  print(list[i])
end
