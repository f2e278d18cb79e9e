-- value: []
local found = array{}
for name in ([[
  io package require load loadstring loadfile dofile debug collectgarbage module setfenv getfenv newproxy unpack
  coroutine getmetatable setmetatable python lupa host import warn gcinfo jit bit bit32 ffi arg sys engine
]]):gmatch("%S+") do
  if _G[name] ~= nil then found[#found + 1] = name end
end
return found
