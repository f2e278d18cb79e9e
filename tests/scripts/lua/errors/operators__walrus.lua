-- error: syntax
-- line: 6
-- message: <name> expected near '='
-- hint: Lua assigns with =, not :=; write: x = …

x := 5
return x
