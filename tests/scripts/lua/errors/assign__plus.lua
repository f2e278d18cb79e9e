-- error: syntax
-- line: 8
-- message: syntax error near '+'
-- hint: Lua has no +=; write: count = count + i

local count = 0
for i = 1, 3 do
  count += i
end
return count
