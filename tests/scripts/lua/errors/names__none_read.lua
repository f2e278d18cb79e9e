-- error: runtime
-- line: 6
-- message: 'None' is not defined
-- hint: Lua writes nil, not None; write: return nil

return None
