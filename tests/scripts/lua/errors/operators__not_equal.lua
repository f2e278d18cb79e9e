-- error: syntax
-- line: 7
-- message: 'then' expected near '!'
-- hint: not equal is ~= in Lua, not !=; write: if x ~= 3 then

local x = 2
if x != 3 then
  return x
end
