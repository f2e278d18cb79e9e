-- attack: loop and catch in the functions that list calls
-- limits: {"timeout": 0.3}
-- error: limit time
local function forever() while true do pcall(function() while true do end end) end end
while true do
  pcall(list.map, { 1 }, forever)
  pcall(list.sort_by, { 1 }, forever)
end
