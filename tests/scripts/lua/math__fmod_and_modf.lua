-- value: 1
-- value: 3
-- value: 0.5
-- value: -3
-- value: -0.5
local a, b = math.modf(3.5)
return math.fmod(7, 3), math.tointeger(a), b, math.tointeger((math.modf(-3.5))), (select(2, math.modf(-3.5)))
