-- error: runtime
-- line: 6
-- message: attempt to call a nil value (global 'double')
-- hint: double is defined on line 7, after this line runs: move its definition up

local result = double(2)
local function double(x) return x * 2 end
return result
