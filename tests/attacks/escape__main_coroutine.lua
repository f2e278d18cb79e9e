-- attack: resume and close the main coroutine from another
-- features: coroutines
-- value: [false, "cannot resume non-suspended coroutine"]
-- value: false
local main = coroutine.running()
local resumed, closed
coroutine.wrap(function()
  resumed = { coroutine.resume(main) }
  closed = pcall(coroutine.close, main)
end)()
return resumed, closed
