-- error: syntax
-- line: 6
-- message: <eof> expected near 's'
-- hint: the ' inside the string ends it; write \', or put the string between "

return 'it's fine'
