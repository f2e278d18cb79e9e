-- error: runtime
local t = {}
local at = t
for i = 1, 100 do
  at.x = {}
  at = at.x
end
error(t)
-- next run
-- value: 1
return 1
