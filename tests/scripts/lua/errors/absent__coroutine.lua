-- error: runtime
-- line: 6
-- message: attempt to index a nil value (global 'coroutine')
-- hint: coroutines are not available here: use loops, and parallel to run calls at the same time

local co = coroutine.create(function() end)
return co
