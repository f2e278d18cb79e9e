-- value: false
-- value: 2
-- value: 1
-- value: 5
local t = { a = 1 }
return rawequal({}, {}), rawlen({ 1, 2 }), rawget(t, "a"), rawset(t, "b", 5).b
