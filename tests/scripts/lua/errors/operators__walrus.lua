-- error: syntax
-- line: 6
-- message: <name> expected near '='
-- hint: Lua assigns with =, not :=; write: x = 5

x := 5
return x
