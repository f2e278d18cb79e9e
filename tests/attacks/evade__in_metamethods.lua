-- attack: loop in a metamethod that C calls
-- features: metatables
-- limits: {"timeout": 0.2}
-- error: limit time
local function hang() while true do end end
local t = setmetatable({}, { __index = hang, __lt = hang, __concat = hang, __len = hang, __tostring = hang })
while true do
  pcall(table.concat, t, "", 1, 3)
  pcall(table.unpack, t, 1, 3)
  pcall(tostring, t)
  pcall(table.sort, { t, t })
end
