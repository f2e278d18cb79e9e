-- error: runtime
-- line: 6
-- message: unfinished capture
-- hint: in Lua patterns ( ) . % + - * ? [ ^ $ have a meaning: put % before them, or find plain text with s:find(text, 1, true)

return ("a(b"):find("(")
