-- error: syntax
-- line: 7
-- message: ')' expected near '='
-- hint: named arguments are written in braces with =; write: greet{name = "Ada", age = 36}

local function greet(t) return t.name end
return greet(name = "Ada", age = 36)
