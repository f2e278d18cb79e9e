-- error: syntax
-- line: 6
-- message: <eof> expected near 's'
-- hint: the ' inside the text ends the string; write \' there, or begin and end the string with "

return 'it's fine'
