-- error: syntax
-- line: 6
-- message: unexpected symbol near '“'
-- hint: strings need straight quotes: write ", not “

return “hello”
