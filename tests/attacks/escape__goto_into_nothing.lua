-- attack: jump into another function
-- error: syntax
do goto inside end
local function f()
  ::inside::
  return 1
end
