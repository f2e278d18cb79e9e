-- features: metatables
-- value: ["body", "closed"]
local log = {}
do
  local x <close> = setmetatable({}, { __close = function() log[#log + 1] = "closed" end })
  log[#log + 1] = "body"
end
return log
