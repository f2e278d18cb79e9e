-- attack: take off or read the metatable that seals a library
-- features: metatables
-- value: false
-- value: false
-- value: false
-- value: 0
local done = 0
for _, lib in ipairs{ string, table, math, utf8, os, json, docs, tools, parallel } do
  if pcall(setmetatable, lib, nil) then done = done + 1 end
  if pcall(setmetatable, lib, { __index = {} }) then done = done + 1 end
end
return getmetatable(string), getmetatable(tools), getmetatable(docs), done
