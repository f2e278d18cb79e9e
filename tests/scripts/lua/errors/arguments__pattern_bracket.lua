-- error: runtime
-- line: 6
-- message: malformed pattern (missing ']')
-- hint: ( ) . % + - * ? [ ^ $ are special in Lua patterns: put % before them, or search for plain text with s:find(text, 1, true)

return ("a[b"):gsub("[", "")
