-- features: coroutines
-- value: true
-- value: false
-- value: true
local _, main = coroutine.running()
local inside
coroutine.wrap(function() inside = coroutine.isyieldable() end)()
return main, coroutine.isyieldable(), inside
