-- error: syntax
-- line: 6
-- message: unexpected symbol near 'end'
-- hint: 'end' is a reserved word in Lua; write: ["end"] = …

return {end = 5}
