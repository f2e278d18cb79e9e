-- value: {"a": [1], "b": [1]}
local x = { 1 }
return { a = x, b = x }
