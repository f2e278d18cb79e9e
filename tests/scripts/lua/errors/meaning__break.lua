-- error: syntax
-- line: 7
-- message: break outside loop at line 7
-- hint: break leaves a for, while or repeat loop; to end the script write return

if true then
  break
end
