-- value: false
-- value: "invalid"
local ok, e = pcall(docs.search, 5)
return ok, e.code
