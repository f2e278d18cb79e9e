-- error: runtime
-- message has: variable 'x' got a non-closable value
local x <close> = {}
return 1
