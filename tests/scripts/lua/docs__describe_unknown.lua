-- value: false
local ok = pcall(docs.describe, "no_such_tool")
return ok
