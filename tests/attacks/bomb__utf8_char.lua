-- attack: make a huge string with utf8.char
-- value: 800000
local t = {}
for i = 1, 200000 do t[i] = 0x10ffff end
return #utf8.char(table.unpack(t))
