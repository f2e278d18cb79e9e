-- error: runtime
-- line: 7
-- message: bad argument #1 to 'upper' (string expected, got nil)
-- hint: user.name is nil, but string.upper needs a string there: check it first

local user = {}
return string.upper(user.name)
