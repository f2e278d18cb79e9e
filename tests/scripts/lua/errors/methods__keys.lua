-- error: runtime
-- line: 7
-- message: attempt to call a nil value (field 'keys')
-- hint: there is no method keys; use a loop: for key in pairs(t) do … end

local t = {a = 1}
for k in t.keys() do print(k) end
