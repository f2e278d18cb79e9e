-- value: [1, 3]
local t = {}
for i = 1, 3 do
  if i == 2 then goto continue end
  t[#t + 1] = i
  ::continue::
end
return t
