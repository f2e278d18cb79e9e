-- attack: write into a library with the functions of table
-- value: 0
local done = 0
for _, f in ipairs{
  function() rawset(string, "upper", print) end,
  function() table.insert(string, print) end,
  function() table.insert(string, 1, print) end,
  function() table.move({ 1, 2 }, 1, 2, 1, string) end,
  function() string.upper = print end,
  function() string[1] = print end,
  function() _G.string.upper = print end,
} do
  if pcall(f) then done = done + 1 end
end
return done
