-- error: syntax
-- line: 7
-- message: syntax error near ';'
-- hint: Lua has no continue; write goto continue here and ::continue:: on a line of its own before the loop's end

for i = 1, 3 do
  if i == 2 then continue; end
end
