-- error: syntax
-- line: 6
-- message: unexpected symbol near ':'
-- hint: Lua has no type annotations: remove the colon and the type

local function double(x): number
  return x * 2
end
