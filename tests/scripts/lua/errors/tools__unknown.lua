-- error: runtime
-- line: 7
-- message: attempt to call a nil value (field 'frobnicate')
-- hint: the tools are: tools.add, tools.echo, tools.fail, tools.rows, tools.text

local x = 1
tools.frobnicate{a = 1}
