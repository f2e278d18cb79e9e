-- error: runtime
-- line: 7
-- message: stack overflow
-- hint: the function 'down' calls itself without end: give it a case in which it returns without calling itself

local function down(n)
  return 1 + down(n - 1)
end
return 1 + down(1)
