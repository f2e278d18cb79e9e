-- attack: blow a string up with widths of string.format
-- value: 0
local done = 0
for _, form in ipairs{ "%1000d", "%.1000f", "%0999999999d", "%99999s", "%.100s%100d" } do
  if pcall(string.format, form, 1) then done = done + 1 end
end
return done
