-- attack: replace every global and fail, so that the report is made with them
-- error: runtime
-- message has: nil value
local G = _G
for name in pairs(G) do if name ~= "kept" then G[name] = nil end end
nothing()
-- next run
-- error: tool
-- calls: fail
local fail = tools.fail
local G = _G
for name in pairs(G) do if name ~= "kept" then G[name] = function() while true do end end end end
fail()
