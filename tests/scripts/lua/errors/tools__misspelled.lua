-- error: runtime
-- line: 6
-- message: attempt to call a nil value (field 'ehco')
-- hint: did you mean tools.echo?

local x = tools.ehco{value = 1}
return x
