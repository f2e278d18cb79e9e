-- value: false
-- value: "script:3: mine"
local r = parallel.settle{ function() error("mine") end }
return r[1].ok, r[1].error
