-- error: syntax
-- line: 7
-- message: unexpected symbol near '`'
-- hint: Lua has no template strings; join the parts with ..: "Hello " .. name

local name = "Ada"
return `Hello ${name}!`
