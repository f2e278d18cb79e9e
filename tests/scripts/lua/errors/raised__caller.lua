-- error: runtime
-- line: 8
-- message: x is missing

local function check(x)
  if not x then error("x is missing", 2) end
end
check(nil)
