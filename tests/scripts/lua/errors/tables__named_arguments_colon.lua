-- error: syntax
-- line: 7
-- message: <name> expected near '"Ada"'
-- hint: named arguments are written in braces with =; write: greet{name = value}

local function greet(t) return t.name end
return greet(name: "Ada")
