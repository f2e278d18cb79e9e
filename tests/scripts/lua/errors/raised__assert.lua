-- error: runtime
-- line: 6
-- message: no user

local user
assert(user, "no user")
