-- attack: overflow the C stack with gsub in gsub
-- value: false
-- value: true
local function f(s) return (s:gsub(".", f)) end
local ok, e = pcall(f, "x")
return ok, e:find("overflow") ~= nil
