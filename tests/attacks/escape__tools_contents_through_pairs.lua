-- attack: replace a tool through the table that pairs hands out
-- value: 2
-- calls: add
local _, contents = pairs(tools)
contents.add = function() return "hacked" end
return tools.add(1)
