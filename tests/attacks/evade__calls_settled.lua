-- attack: have parallel.settle swallow the limit on calls
-- limits: {"max_tool_calls": 2}
-- error: limit calls
-- calls: add add
parallel.map({ 1, 2, 3, 4 }, function(i) return tools.add(i) end, { settle = true, concurrency = 2 })
while true do end
