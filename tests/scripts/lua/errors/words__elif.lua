-- error: syntax
-- line: 9
-- message: 'end' expected (to close 'if' at line 7) near 'elif'
-- hint: Lua writes elseif, not elif; write: elseif x == 2 then

local x = 2
if x == 1 then
  return "one"
elif x == 2 then
  return "two"
end
