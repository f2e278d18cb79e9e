-- error: syntax
-- line: 7
-- message: syntax error near 'return'
-- hint: Lua has no --, which begins a comment; write: i = i - 1

local i = 3
i--
return i
