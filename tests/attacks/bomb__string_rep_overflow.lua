-- attack: overflow the size that string.rep computes
-- value: 0
local done = 0
for _, n in ipairs{ math.maxinteger, 2 ^ 62, 2 ^ 63, 1e308 } do
  if pcall(string.rep, "x", -n) and n < 2 ^ 62 then done = done + 1 end
end
return done
