-- error: syntax
-- line: 6
-- message: invalid escape sequence near '"C:\h'
-- hint: write a backslash in a string as \\

return "C:\home"
