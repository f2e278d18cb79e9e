-- attack: spend operations in coroutines that end before they are counted
-- features: coroutines
-- limits: {"max_operations": 20000, "timeout": 5}
-- error: limit operations
while true do coroutine.wrap(function() local x = 1 end)() end
