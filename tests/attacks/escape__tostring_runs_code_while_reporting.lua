-- attack: run a loop in __tostring when the error is reported, after the run is over
-- features: metatables
-- limits: {"timeout": 0.3}
-- error: limit time
error(setmetatable({}, { __tostring = function() while true do end end }))
