-- error: syntax
-- line: 8
-- message: function arguments expected near <eof>
-- hint: a : calls a method and needs parentheses: user:name(); a field is read with a dot: user.name

local user = {name = "Ada"}
return user:name
