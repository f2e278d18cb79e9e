-- error: syntax
-- line: 9
-- message: 'then' expected near 'return'
-- hint: then is missing; write: elseif x == 2 then

local x = 1
if x == 1 then
  return 1
elseif x == 2
  return 2
end
