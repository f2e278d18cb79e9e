-- value: 7
-- value: null
local function f()
  local _ENV = { x = 7 }
  return x
end
return f(), x
