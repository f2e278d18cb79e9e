-- error: syntax
-- line: 6
-- message: ')' expected near ':'
-- hint: Lua has no type annotations: remove the colon and the type

function double(x: number)
  return x * 2
end
