-- error: syntax
-- line: 6
-- message: <eof> expected near '['
-- hint: a table that is indexed at once stands in parentheses: ({…})[1]

return {1, 2, 3}[1]
