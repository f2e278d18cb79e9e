-- attack: have the host search its documentation for megabytes of words
-- value: false
-- value: "invalid"
local ok, e = pcall(docs.search, ("word "):rep(1000000))
return ok, e.code
