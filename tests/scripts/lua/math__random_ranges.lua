-- value: true
-- value: true
for _ = 1, 200 do
  local r = math.random(3, 5)
  assert(r >= 3 and r <= 5)
end
local f = math.random()
return f >= 0 and f < 1, math.random(0) ~= nil
