-- error: runtime
-- line: 7
-- message: attempt to call a nil value (global 'f')
-- hint: there are no f-strings: join the parts with ..; write: "Hello " .. name .. "!"

local name = "Ada"
return f"Hello {name}!"
