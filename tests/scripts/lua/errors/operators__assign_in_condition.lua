-- error: syntax
-- line: 7
-- message: 'then' expected near '='
-- hint: = assigns; Lua compares with ==; write: if x == 5 then

local x = 5
if x = 5 then
  return x
end
