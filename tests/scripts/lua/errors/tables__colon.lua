-- error: syntax
-- line: 6
-- message: <name> expected near '"Ada"'
-- hint: table fields are written with =; write: name = "Ada"

local user = {name: "Ada", age: 36}
return user
