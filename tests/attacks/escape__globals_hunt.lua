-- attack: find anything in reach that is neither plain data, a function nor null
-- features: metatables coroutines
-- value: []
local seen, odd = {}, array{}
local function visit(value, path)
  local kind = type(value)
  if kind == "userdata" and value ~= json.null or kind == "thread" then odd[#odd + 1] = path .. ": " .. kind end
  if kind ~= "table" or seen[value] then return end
  seen[value] = true
  for k, v in pairs(value) do
    visit(k, path .. ".key")
    visit(v, path .. "." .. tostring(k))
  end
  local meta = getmetatable(value)
  if meta then visit(meta, path .. ".metatable") end
end
visit(_G, "_G")
return odd
