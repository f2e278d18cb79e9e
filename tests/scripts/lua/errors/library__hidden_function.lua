-- error: runtime
-- line: 7
-- message: attempt to call a string value (local 'type')
-- hint: the local 'type' hides the function of that name: rename it

local type = "order"
return type(5)
