-- attack: see or change what pairs and next remember, through __eq, through the values that they return, or through a table key
-- features: metatables
-- value: 0
-- value: "a b c "
local seen = 0
local spy = { __eq = function(a, b)
  if type(a) ~= "table" or type(b) ~= "table" then seen = seen + 1 end
  return true
end, __index = function() seen = seen + 1 end, __lt = function() seen = seen + 1 return true end }
local first, second = setmetatable({}, spy), setmetatable({}, spy)
local t = { [first] = 1, [second] = 2, c = 3, a = 4, [true] = 5 }
for _ in pairs(t) do end
for key in next, t do t[key] = nil end
local step, state = pairs({ c = 1, a = 1, b = 1 })
pcall(step, nil, "a")
pcall(step, { a = 1, b = 1, c = 1 }, {})
pcall(step, setmetatable({}, { __index = function() return 1 end }), "b")
if type(state) == "table" then state[1], state[2], state.a = nil, nil, nil end
local names = ""
for key in pairs({ b = 1, c = 1, a = 1 }) do names = names .. key .. " " end
return seen, names
