-- error: runtime
-- message has: value.a has a key that is not UTF-8 text; keys must be text or integers
return { a = { ["\255"] = 1 } }
-- next run
-- value: 1
local t = { ["\255"] = 1 }
return t["\255"]
