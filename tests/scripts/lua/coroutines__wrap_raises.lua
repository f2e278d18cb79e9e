-- features: coroutines
-- error: runtime
-- message: oops
coroutine.wrap(function() error("oops", 0) end)()
