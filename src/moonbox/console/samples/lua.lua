-- A script may call tools, loop over what they return, and give back only what is needed.
-- Press Ctrl+Enter to run it. docs.search("words") finds tools.
local found = docs.search("list")
for _, tool in ipairs(found) do print(tool.name, tool.signature) end

squares = {}
for n = 1, 12 do squares[n] = n * n end
return squares
