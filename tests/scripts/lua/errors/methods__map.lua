-- error: runtime
-- line: 7
-- message: attempt to call a nil value (method 'map')
-- hint: there is no method map; use a loop: for _, item in ipairs(list) do … end

local list = {1, 2}
return list:map(function(x) return x end)
