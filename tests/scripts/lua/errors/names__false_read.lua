-- error: runtime
-- line: 6
-- message: 'False' is not defined
-- hint: Lua writes false, not False; write: return false

return False
