-- Before this come: prefix, seed, trouble, count.
math.randomseed(seed)
local made = 0

local function token()
  made = made + 1
  return prefix .. "-" .. made
end

local function one()
  local name = math.random() < 0.5 and "plain" or "awaited"
  return pcall(tools[name], {token = token(), fail = math.random() < 0.1})
end

for _ = 1, count / 4 do one() end

if trouble ~= "" then
  pcall(tools[trouble], {token = token()})
end

local together = {}
for index = 1, count / 2 do
  together[index] = one
end
parallel.settle(together)

for _ = 1, count / 4 do one() end
return made
