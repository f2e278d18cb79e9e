-- error: syntax
-- line: 7
-- message: 'then' expected near '!'
-- hint: not equal is ~= in Lua, not !=; write: if a ~= 2 then (also += on line 8, != on line 10, && on line 10, ++ on line 11)

local a, n = 1, 0
if a != 2 then
  n += 1
end
if a != 3 && n > 0 then
  n++
end
return n
