-- attack: flood the stack with table.unpack
-- value: 0
local done = 0
for _, n in ipairs{ 1e6, 1e7, 1e9, 2 ^ 31, 2 ^ 40, math.maxinteger } do
  if pcall(table.unpack, {}, 1, n) then done = done + 1 end
  if pcall(table.unpack, {}, -n, n) then done = done + 1 end
end
return done
