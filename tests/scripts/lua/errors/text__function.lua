-- error: runtime
-- line: 7
-- message: attempt to concatenate a function value (local 'name')
-- hint: name is a function: call it with name(…)

local function name() return "x" end
return "name: " .. name
