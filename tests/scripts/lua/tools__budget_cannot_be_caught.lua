-- limits: {"max_tool_calls": 1}
-- error: limit calls
-- calls: add
while true do pcall(tools.add, 1) end
