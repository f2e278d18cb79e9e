-- error: runtime
-- line: 6
-- message: attempt to call a nil value (global 'isinstance')
-- hint: Lua has no isinstance; use type(5), which returns "string", "number", "table" or another name

return isinstance(5, int)
