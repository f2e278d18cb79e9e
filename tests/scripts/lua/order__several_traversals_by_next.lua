-- value: "aa ab ac ba bb bc ca cb cc "
-- value: "1 2 3 x y "
-- value: 20000
local t, out = { c = 1, a = 1, b = 1 }, ""
for outer in next, t do
  for inner in next, t do out = out .. outer .. inner .. " " end
end
local list, names = { 1, 2, 3 }, ""
for _ in next, list do end
list.y, list.x = 1, 1
for key in next, list do names = names .. key .. " " end
local many, count = {}, 0
for index = 1, 20000 do many["key" .. index] = index end
for _ in next, many do count = count + 1 end
return out, names, count
