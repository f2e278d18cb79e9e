-- error: syntax
-- line: 7
-- message: function arguments expected near <eof>
-- hint: a colon calls a method and needs parentheses: user:name(); read a field with a dot: user.name

local user = {name = "Ada"}
return user:name
