-- value: [true, null, "none"]
True, None = true, "none"
local undefined
return {True, undefined == nil and null, None}
