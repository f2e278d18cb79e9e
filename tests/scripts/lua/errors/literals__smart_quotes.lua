-- error: syntax
-- line: 6
-- message: unexpected symbol near '“'
-- hint: strings stand between straight quotes: write ", not “

return “hello”
