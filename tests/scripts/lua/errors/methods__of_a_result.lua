-- error: runtime
-- line: 7
-- message: attempt to call a nil value (field 'map')
-- calls: rows
-- hint: there is no method map; use a loop: for _, item in ipairs(tools.rows{count = 2}) do … end

return tools.rows{count = 2}.map(function(x) return x end)
