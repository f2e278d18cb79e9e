-- error: syntax
-- line: 6
-- message: ')' expected near ':'
-- hint: Lua has no type annotations; write: local function add(a, b)

local function add(a: number, b: number)
  return a + b
end
