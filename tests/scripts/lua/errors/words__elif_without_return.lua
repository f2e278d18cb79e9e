-- error: syntax
-- line: 9
-- message: syntax error near 'x'
-- hint: Lua writes elseif, not elif; write: elseif x == 2 then

local x = 2
if x == 1 then
  print("one")
elif x == 2 then
  print("two")
end
