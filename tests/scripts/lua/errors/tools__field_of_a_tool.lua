-- error: runtime
-- line: 6
-- message: attempt to index a function value (field 'add')
-- hint: tools.add is a function: call it before reading fields

return tools.add.result
