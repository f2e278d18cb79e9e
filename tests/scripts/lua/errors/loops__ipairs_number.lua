-- error: runtime
-- line: 7
-- message: attempt to index a number value
-- hint: ipairs needs a list, but n is a number

local n = 5
for _, x in ipairs(n) do print(x) end
