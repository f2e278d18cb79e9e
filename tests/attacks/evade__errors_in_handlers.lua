-- attack: keep the handler failing, which calls the handler again
-- limits: {"timeout": 0.2}
-- error: limit time
local function handler(e) error(e) end
while true do xpcall(error, handler, "x") end
