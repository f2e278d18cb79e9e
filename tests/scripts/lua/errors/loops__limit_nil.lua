-- error: runtime
-- line: 7
-- message: bad 'for' limit (number expected, got nil)
-- hint: order.count is nil, but loop bounds must be numbers

local order = {}
for i = 1, order.count do print(i) end
