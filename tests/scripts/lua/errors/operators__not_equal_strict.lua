-- error: syntax
-- line: 7
-- message: <eof> expected near '!'
-- hint: not equal is ~= in Lua, not !==; write: return x ~= 3

local x = 2
return x !== 3
