-- attack: keep a function of an earlier run that has an environment of its own
-- value: true
function spy() return _ENV == _G and type(print) end
local f = spy
return f() == "function"
-- next run
-- value: "function"
print = 5
return spy() == "number" and "function"
