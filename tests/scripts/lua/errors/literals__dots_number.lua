-- error: syntax
-- line: 6
-- message: malformed number near '1..2'
-- hint: leave a space before .. when it joins a number: 1 .. 2

return 1..2
