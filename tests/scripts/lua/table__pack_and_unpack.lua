-- value: 3
-- value: 2
-- value: 3
local p = table.pack(1, nil, 3)
return p.n, select(2, table.unpack({ 1, 2, 3 }))
