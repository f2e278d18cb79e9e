-- error: runtime
-- line: 6
-- message: attempt to call a nil value (global 'add')
-- hint: 'add' is not a global: tools are called through the table 'tools'; write: tools.add{…}

return add{a = 1}
