-- error: syntax
-- line: 6
-- message: <eof> expected near '['
-- hint: to index a table constructor, put it in parentheses: ({…})[1]

return {1, 2, 3}[1]
