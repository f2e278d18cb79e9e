-- error: syntax
-- line: 6
-- message: ')' expected near ':'
-- hint: Lua has no type annotations: remove the colon and the type

local function add(a: number, b: number)
  return a + b
end
