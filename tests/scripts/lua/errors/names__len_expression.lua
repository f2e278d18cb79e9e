-- error: runtime
-- line: 7
-- message: attempt to call a nil value (global 'len')
-- hint: Lua has no len; write: #(a .. b)

local a, b = "x", "y"
return len(a .. b)
