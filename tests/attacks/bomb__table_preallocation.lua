-- attack: have table.pack and table.move allocate a lot at once
-- error: limit memory
local keep = {}
for i = 1, 100 do keep[i] = table.pack(table.unpack({}, 1, 200000)) end
