-- value: 3
-- value: 2
-- value: "c"
local function f(...) return select("#", ...), (select(2, ...)) end
local n, second = f(1, 2, nil)
return n, second, (select(-1, "a", "b", "c"))
