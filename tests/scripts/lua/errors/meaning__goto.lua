-- error: syntax
-- line: 7
-- message: no visible label 'continue' for <goto> at line 7
-- hint: put ::continue:: on a line of its own before the loop's end; a goto cannot leave its function

for i = 1, 3 do
  if i == 2 then goto continue end
end
