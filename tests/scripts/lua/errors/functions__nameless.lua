-- error: syntax
-- line: 6
-- message: <name> expected near '('
-- hint: a function needs a name here; write: local function name(x) … end

function (x)
  return x
end
print(1)
