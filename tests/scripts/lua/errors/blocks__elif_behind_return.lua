-- error: syntax
-- line: 7
-- message: 'end' expected near 'elif'
-- hint: Lua writes elseif, not elif

local n = 1
if n > 1 then return 1 elif n > 0 then return 2 end
