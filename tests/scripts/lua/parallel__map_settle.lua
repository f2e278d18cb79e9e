-- value: [true, false]
-- calls: add fail
local r = parallel.map({ 1, 2 }, function(i) return i == 1 and tools.add(1) or tools.fail() end, { settle = true })
return { r[1].ok, r[2].ok }
