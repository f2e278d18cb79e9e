-- error: syntax
-- line: 6
-- message: unexpected symbol near '"b"'
-- hint: strings are joined with ..; write: "a" .. "b"

local x = "a" "b"
return x
