-- error: runtime
-- line: 7
-- message: attempt to call a nil value (field 'join')
-- hint: there is no method join; write: table.concat(list, ", ")

local list = {"a", "b"}
return list.join(", ")
