-- error: runtime
-- line: 6
-- message: attempt to call a nil value (global 'setmetatable')
-- hint: metatables are not available here: use plain tables and functions

local Point = setmetatable({}, {})
return Point
