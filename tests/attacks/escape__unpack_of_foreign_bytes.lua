-- attack: read outside of a string with string.unpack and negative positions
-- value: 0
local done = 0
for _, case in ipairs{ { "i8", "abc", 1 }, { "z", "abc", 1 }, { "s8", ("\255"):rep(8), 1 }, { "i4", "abcd", 10 }, { "c100", "abc", -1 }, { "!16i16", "abc", 1 } } do
  if pcall(string.unpack, table.unpack(case)) then done = done + 1 end
end
return done
