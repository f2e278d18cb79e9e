-- attack: pass for a tool's error with an __eq that says yes
-- features: metatables
-- error: runtime
-- message: denied
caught = nil
local mt = setmetatable({}, { __eq = function(_, other) caught = other return true end })
error(setmetatable({ message = "denied", code = "approval_denied", tool = "add" }, mt))
-- next run
-- value: null
return caught
