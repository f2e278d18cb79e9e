-- value: [{"id": 1, "n": "a"}, {"id": 2, "n": "b"}, {"id": 3, "n": "c"}, {"id": 4, "n": "d"}, {"id": 5, "n": "e"}, {"id": 6, "n": "f"}, {"id": 7, "n": "g"}, {"id": 8, "n": "h"}, {"id": 9, "n": "i"}]
local t = {}
for i = 1, 9 do t[i] = { id = i, n = string.char(96 + i) } end
return t
