-- attack: make calls in coroutines that swallow their errors
-- features: coroutines
-- limits: {"max_tool_calls": 3}
-- error: limit calls
-- calls: add add add
while true do coroutine.resume(coroutine.create(function() tools.add(1) end)) end
