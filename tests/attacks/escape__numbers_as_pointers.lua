-- attack: have numbers taken for functions or tables
-- value: 0
local done = 0
for _, n in ipairs{ 0, 1, -1, math.maxinteger, 0.5, 140737488355328 } do
  if pcall(function() return n() end) then done = done + 1 end
  if pcall(function() return n.x end) then done = done + 1 end
  if pcall(function() n.x = 1 end) then done = done + 1 end
  if pcall(string.format, "%s", n) and pcall(string.pack, "j", print) then done = done + 1 end
end
return done
