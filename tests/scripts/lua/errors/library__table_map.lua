-- error: runtime
-- line: 7
-- message: attempt to call a nil value (field 'map')
-- hint: there is no table.map; use a loop: for _, item in ipairs(list) do … end

local list = {1, 2}
return table.map(list, function(x) return x end)
