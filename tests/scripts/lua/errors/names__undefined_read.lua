-- error: runtime
-- line: 6
-- message: 'undefined' is not defined
-- hint: Lua writes nil, not undefined; write: local x = nil

local x = undefined
