-- error: syntax
-- line: 6
-- message: ',' expected near 'to'
-- hint: the bounds of a loop are separated by a comma; write: for i = 1, 3 do

for i = 1 to 3 do
  print(i)
end
