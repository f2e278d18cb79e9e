-- attack: change a library through the table that pairs hands out
-- value: "X"
-- value: "X"
local _, contents = pairs(string)
contents.upper = function() return "hacked" end
rawset(contents, "upper", nil)
return ("x"):upper(), string.upper("x")
-- next run
-- value: "X"
return ("x"):upper()
