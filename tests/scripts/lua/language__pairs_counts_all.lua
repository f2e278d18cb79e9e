-- value: 4
local n = 0
for _ in pairs({ 1, 2, x = 3, y = 4 }) do n = n + 1 end
return n
