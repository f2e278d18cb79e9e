-- error: syntax
-- line: 6
-- message: unexpected symbol near '*'
-- hint: a power is written ^ in Lua, not **; write: return 2 ^ 8

return 2 ** 8
