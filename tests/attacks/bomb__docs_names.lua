-- attack: have the host look for the nearest name to megabytes of text
-- value: false
-- value: "invalid"
local ok, e = pcall(docs.describe, ("x"):rep(5000000))
return ok, e.code
