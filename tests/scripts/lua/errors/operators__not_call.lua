-- error: syntax
-- line: 7
-- message: unexpected symbol near '!'
-- hint: Lua writes 'not' for !; write: if not ready() then return 1 end

local function ready() return true end
if !ready() then return 1 end
