-- attack: make calls that are refused before the tool runs, as if they did not count
-- limits: {"max_tool_calls": 3}
-- error: limit calls
-- calls: add add add
while true do pcall(tools.add, { nonsense = true }) end
