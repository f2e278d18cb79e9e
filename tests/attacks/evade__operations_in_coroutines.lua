-- attack: spend operations in coroutines
-- features: coroutines
-- limits: {"max_operations": 20000}
-- error: limit operations
for _ = 1, 1000 do coroutine.wrap(function() for i = 1, 1000 do end end)() end
