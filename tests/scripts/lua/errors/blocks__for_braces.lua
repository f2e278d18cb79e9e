-- error: syntax
-- line: 7
-- message: 'do' expected near <eof>
-- hint: Lua has no braces around blocks; use do … end; write: for _, item in ipairs(items) do

local items = {1, 2}
for item in items {
  print(item)
}
