-- value: true
-- value: false
return true, false
