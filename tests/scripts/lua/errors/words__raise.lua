-- error: syntax
-- line: 7
-- message: syntax error near 'ValueError'
-- hint: Lua raises errors with a function; write: error("what went wrong")

local x = 1
raise ValueError("no")
