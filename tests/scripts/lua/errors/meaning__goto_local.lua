-- error: syntax
-- line: 7
-- message: <goto continue> at line 7 jumps into the scope of local 'twice'
-- hint: move ::continue:: to the very end of the block, or declare twice before the goto

for i = 1, 3 do
  if i == 2 then goto continue end
  local twice = i * 2
  ::continue::
  print(twice)
end
