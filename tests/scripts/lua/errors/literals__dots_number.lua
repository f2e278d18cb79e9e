-- error: syntax
-- line: 6
-- message: malformed number near '1..2'
-- hint: put a space between a number and ..: 1 .. 2

return 1..2
