-- error: syntax
-- line: 6
-- message: '(' expected near 'double'
-- hint: a function expression has no name; write: function(x) … end

local f = function double(x)
  return x * 2
end
