-- error: runtime
-- line: 6
-- message: 'NULL' is not defined
-- hint: Lua writes nil, not NULL; write: return tostring(nil)

return tostring(NULL)
