-- error: syntax
-- line: 7
-- message: 'do' expected near 'i'
-- hint: do is missing; write: while i < 3 do

local i = 0
while i < 3
  i = i + 1
end
