-- error: runtime
-- line: 6
-- message: attempt to index a nil value (global 'Object')
-- hint: there is no Object here; use a loop: for key in pairs({a = 1}) do … end

return Object.keys({a = 1})
