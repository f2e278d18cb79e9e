-- error: syntax
-- line: 9
-- message: 'end' expected (to close 'if' at line 7) near <eof>
-- hint: else if opens another if that needs an end of its own; use elseif; write: elseif x == 2 then

local x = 2
if x == 1 then
  return 1
else if x == 2 then
  return 2
end
