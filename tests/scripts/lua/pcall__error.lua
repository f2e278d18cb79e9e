-- value: false
-- value: "script:3: x"
pcall(function() error("x") end)
