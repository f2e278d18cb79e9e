-- error: syntax
-- line: 6
-- message: 'then' expected near 'else'
-- hint: Lua has no `a if b else c`; write: if true then x = 1 else x = 2 end

x = 1 if True else 2
return x
