-- value: false
-- value: true
local ok, e = pcall(json.encode, { print })
return ok, e:find("is a function", 1, true) ~= nil
