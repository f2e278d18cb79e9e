-- error: runtime
-- line: 6
-- message: attempt to call a nil value (global 'sum')
-- hint: Lua has no sum; use a loop: for _, x in ipairs({1, 2}) do total = total + x end

return sum({1, 2})
