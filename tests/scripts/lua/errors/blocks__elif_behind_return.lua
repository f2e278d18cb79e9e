-- error: syntax
-- line: 7
-- message: 'end' expected near 'elif'
-- hint: Lua writes elseif, not elif; write: if n > 1 then return 1 elseif n > 0 then return 2 end

local n = 1
if n > 1 then return 1 elif n > 0 then return 2 end
