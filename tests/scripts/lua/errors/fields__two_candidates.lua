-- error: runtime
-- line: 6
-- message: attempt to index a nil value (field 'x')

local a, b = {}, {x = {}}
return a.x.y + b.x.y
