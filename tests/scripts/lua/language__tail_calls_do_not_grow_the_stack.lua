-- value: "done"
local function loop(n) if n == 0 then return "done" end return loop(n - 1) end
return loop(1000000)
