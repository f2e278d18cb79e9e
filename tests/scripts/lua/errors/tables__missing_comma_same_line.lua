-- error: syntax
-- line: 6
-- message: '}' expected near 'b'
-- hint: table fields are separated by commas: one is missing before 'b'

return {a = 1 b = 2}
