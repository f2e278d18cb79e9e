-- value: 3
-- value: [null, null, null]
-- value: 3
-- calls: echo echo echo
local results = parallel.map({ 1, 2, 3 }, function() return tools.echo{ value = json.null } end)
local n = 0
for _ in ipairs(results) do n = n + 1 end
return #results, results, n
