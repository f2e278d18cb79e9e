-- value: "hexxo"
-- value: 2
-- value: "H-E-Y"
-- value: "1 and two"
local s, n = ("hello"):gsub("l", "x")
local map = { a = 1 }
return s, n, (("hey"):gsub("%a", string.upper):gsub("(%u)(%u)(%u)", "%1-%2-%3")), (("$a and $b"):gsub("%$(%w+)", { a = 1, b = "two" }))
