-- error: runtime
-- line: 7
-- message: stack overflow
-- hint: the function 'down' calls itself endlessly: add a case that returns without another call

local function down(n)
  return 1 + down(n - 1)
end
return 1 + down(1)
