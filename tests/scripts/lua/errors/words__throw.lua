-- error: syntax
-- line: 6
-- message: syntax error near 'new'
-- hint: Lua raises errors with a function; write: error("what went wrong")

throw new Error("no")
