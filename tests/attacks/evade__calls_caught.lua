-- attack: catch the limit on calls and call on
-- limits: {"max_tool_calls": 3}
-- error: limit calls
-- calls: add add add
while true do pcall(tools.add, 1) end
