-- attack: print in coroutines that swallow the limit
-- features: coroutines
-- limits: {"max_output": 10}
-- error: limit output
-- prints: "abcd\nabcd\n"
while true do coroutine.resume(coroutine.create(function() print("abcd") end)) end
