-- limits: {"max_tool_calls": 2}
-- error: limit calls
-- calls: add add
for i = 1, 3 do tools.add(i) end
-- next run
-- value: 2
-- calls: add
tools.add(1)
