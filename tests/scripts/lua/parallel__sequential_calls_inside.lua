-- value: [4, 5]
-- calls: add add add add
local function twice(n) return tools.add(tools.add(n)) end
return parallel{ function() return twice(2) end, function() return twice(3) end }
