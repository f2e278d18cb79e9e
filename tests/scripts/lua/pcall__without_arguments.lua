-- value: false
-- value: "attempt to call a nil value"
pcall()
