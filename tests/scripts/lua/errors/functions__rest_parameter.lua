-- error: syntax
-- line: 6
-- message: ')' expected near 'rest'
-- hint: Lua's rest parameter has no name; write ... there and in the body: local rest = {...}

local function sum(first, ...rest)
  return first
end
