-- value: true
-- value: false
math.randomseed(7)
local a = { math.random(1000000), math.random(1000000), math.random(1000000) }
math.randomseed(7)
local b = { math.random(1000000), math.random(1000000), math.random(1000000) }
math.randomseed(8)
local c = { math.random(1000000), math.random(1000000), math.random(1000000) }
local same, other = true, true
for i = 1, 3 do
  same = same and a[i] == b[i]
  other = other and a[i] == c[i]
end
return same, other
