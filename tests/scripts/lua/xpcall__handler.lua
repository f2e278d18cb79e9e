-- value: false
-- value: "handled: x"
xpcall(function() error("x", 0) end, function(e) return "handled: " .. e end)
