-- error: syntax
-- line: 6
-- message: malformed number near '1..3'
-- hint: Lua has no ranges; write: for i = 1, 3 do

for i in 1..3 do
  print(i)
end
