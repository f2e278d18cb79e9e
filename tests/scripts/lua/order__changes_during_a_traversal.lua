-- value: "a b d f "
-- value: "a b d f "
-- value: {"a": 10, "b": 20, "d": 40, "f": 60}
-- value: [10000, 0]
local function fields() return { f = 6, e = 5, d = 4, c = 3, b = 2, a = 1 } end
local function visited(t, ...)
  local out = ""
  for key, value in ... do
    out = out .. key .. " "
    t[key] = value * 10
    t.c, t.e = nil, nil
  end
  return out
end
local t, u = fields(), fields()
local first, second = visited(t, pairs(t)), visited(u, next, u)
local many, count, left = {}, 0, 0
for index = 1, 10000 do many["key" .. index] = index end
for key in pairs(many) do
  many[key] = nil
  count = count + 1
end
for _ in pairs(many) do left = left + 1 end
return first, second, t, { count, left }
-- next run
-- value: [3, 0, 4, 0, 3, 0]
-- value: "removed while it is the first"
local function emptied(t)
  local count, left = 0, 0
  for key in next, t do
    count = count + 1
    t[key] = nil
  end
  for _ in pairs(t) do left = left + 1 end
  return count, left
end
local result = array {}
for _, t in ipairs { { c = 1, a = 2, b = 3 }, { [-5] = 0, 1, 2, x = 3 }, { 1, 2, 3 } } do
  local count, left = emptied(t)
  result[#result + 1], result[#result + 2] = count, left
end
return result, "removed while it is the first"
-- next run
-- value: 100
local t, count = {}, 0
for i = 1, 100 do t["k" .. i] = true end
for k in pairs(t) do
  t[k] = nil
  count = count + 1
  for i = 1, 100 do t[k .. i] = true end
end
return count
