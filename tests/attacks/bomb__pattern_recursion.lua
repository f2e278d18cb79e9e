-- attack: overflow the C stack with a pattern
-- value: false
-- value: true
local ok, e = pcall(string.find, ("x"):rep(300000), (".-"):rep(300) .. "y")
local ok2, e2 = pcall(string.match, ("("):rep(300) .. "x", ("(x?"):rep(40))
return ok2, e2 ~= nil
