-- value: 3
local n = 0
repeat
  n = n + 1
  local done = n == 3
until done
return n
