-- error: syntax
-- line: 7
-- message: unexpected symbol near '}'
-- hint: Lua has no braces around blocks; a block is closed with end, not }

local x = 1
}
