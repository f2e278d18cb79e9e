-- attack: find a compiler under the names of older versions or of the engine
-- value: 0
local n = 0
for _, name in ipairs{ "load", "loadstring", "loadfile", "dofile", "require", "setfenv", "getfenv", "eval", "exec", "import", "compile" } do
  if rawget(_G, name) ~= nil then n = n + 1 end
end
return n
