-- attack: reach debug functions in an error handler
-- value: "nil"
-- value: "string"
local inside
local _, kind = xpcall(function() error("x") end, function(e) inside = type(debug) return type(e) end)
return inside, kind
