-- error: tool
-- line: 7
-- message: no 1
-- calls: fail

local function get(n)
  return tools.fail{message = "no " .. n}
end
local a = get(1)
return a
