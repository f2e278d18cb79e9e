-- error: syntax
-- line: 8
-- message: unfinished long string (starting at line 6) near <eof>
-- hint: the long string that begins on line 6 is never closed: add ]]

local text = [[
hello
