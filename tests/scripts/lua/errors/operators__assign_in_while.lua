-- error: syntax
-- line: 7
-- message: 'do' expected near '='
-- hint: = assigns; Lua compares with ==; write: while x == 5 do x = 6 end

local x = 5
while x = 5 do x = 6 end
