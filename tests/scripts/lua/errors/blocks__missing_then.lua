-- error: syntax
-- line: 7
-- message: 'then' expected near 'return'
-- hint: then is missing; write: if x == 1 then

local x = 1
if x == 1
  return x
end
