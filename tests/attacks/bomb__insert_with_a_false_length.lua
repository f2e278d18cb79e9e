-- attack: keep C busy with moving elements that are not there
-- features: metatables
-- isolation: process
-- limits: {"timeout": 0.3}
-- error: limit time
-- state: lost
table.insert(setmetatable({}, { __len = function() return 2 ^ 62 end }), 1, "x")
