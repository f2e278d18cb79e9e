-- error: syntax
-- line: 7
-- message: unexpected symbol near '!'
-- hint: Lua writes 'not' for !; write: return not done

local done = false
return !done
