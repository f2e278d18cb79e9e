-- error: syntax
-- line: 6
-- message: ')' expected near '='
-- hint: Lua has no default values for parameters; begin the body with: if name == nil then name = "you" end

local function greet(name = "you")
  return name
end
