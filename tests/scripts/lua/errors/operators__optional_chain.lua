-- error: syntax
-- line: 7
-- message: <eof> expected near '?'
-- hint: Lua has no ?.; use and; write: return user and user.name

local user = {}
return user?.name
