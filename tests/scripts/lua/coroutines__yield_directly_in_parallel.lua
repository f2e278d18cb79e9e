-- features: coroutines
-- error: runtime
-- message has: coroutine.yield cannot be used directly inside parallel
parallel{ function() coroutine.yield() end }
