-- error: runtime
-- line: 7
-- message: attempt to call a nil value (global 'enumerate')
-- hint: ipairs gives index and value; write: for i, value in ipairs(list) do

local list = {"a"}
for i, value in enumerate(list) do print(i) end
