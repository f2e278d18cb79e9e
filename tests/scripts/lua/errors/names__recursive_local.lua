-- error: runtime
-- line: 8
-- message: attempt to call a nil value (global 'fact')
-- hint: fact is not visible yet inside its own function; write: local function fact(…) … end

local fact = function(n)
  if n <= 1 then return 1 end
  return n * fact(n - 1)
end
return fact(3)
