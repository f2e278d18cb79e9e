-- attack: make calls that fail, as if they did not count
-- limits: {"max_tool_calls": 3}
-- error: limit calls
-- calls: fail fail fail
while true do pcall(tools.fail) end
