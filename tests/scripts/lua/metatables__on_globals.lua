-- features: metatables
-- error: runtime
-- message has: no such global: y
setmetatable(_G, { __index = function(_, k) error("no such global: " .. k, 2) end })
local x = y
-- next run
-- error: runtime
-- message has: no such global: z
return z
-- next run
local _ = setmetatable(_G, nil)
-- next run
-- value: null
return z
