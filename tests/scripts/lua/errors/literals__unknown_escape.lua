-- error: syntax
-- line: 6
-- message: invalid escape sequence near '"C:\h'
-- hint: a backslash in text is written \\

return "C:\home"
