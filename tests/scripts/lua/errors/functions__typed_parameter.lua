-- error: syntax
-- line: 6
-- message: ')' expected near ':'
-- hint: Lua has no type annotations; write: function double(x)

function double(x: number)
  return x * 2
end
