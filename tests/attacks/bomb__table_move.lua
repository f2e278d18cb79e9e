-- attack: keep C busy with table.move
-- value: 0
local done = 0
for _, n in ipairs{ 1e9, 1e15, math.maxinteger - 1 } do
  if pcall(table.move, {}, 1, n, 2) then done = done + 1 end
end
if pcall(table.move, {}, math.mininteger, math.maxinteger, 1) then done = done + 1 end
return done
