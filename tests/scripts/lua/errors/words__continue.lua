-- error: syntax
-- line: 8
-- message: syntax error near 'end'
-- hint: Lua has no continue; write goto continue here and ::continue:: on a line of its own before the loop's end

for i = 1, 3 do
  if i == 2 then
    continue
  end
  print(i)
end
