-- error: syntax
-- line: 7
-- message: 'then' expected near 'return'
-- hint: then is missing; write: if x > 0 then return x end

local x = 1
if x > 0 return x end
