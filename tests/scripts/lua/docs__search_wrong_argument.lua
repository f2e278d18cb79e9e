-- value: false
-- value: "invalid_arguments"
local ok, e = pcall(docs.search, 5)
return ok, e.code
