-- error: syntax
-- line: 6
-- message: 'then' expected near 'else'
-- hint: Lua has no `a if b else c`; write: x = true and 1 or 2

x = 1 if True else 2
return x
