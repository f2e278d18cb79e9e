-- error: runtime
-- line: 7
-- message: attempt to index a nil value (field '?')
-- calls: rows
-- hint: lists start at 1; write: tools.rows{count = 2}[1]

return tools.rows{count = 2}[0].id
