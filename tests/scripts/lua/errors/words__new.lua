-- error: runtime
-- line: 6
-- message: attempt to call a nil value (global 'Date')
-- hint: Lua has no new; use os.time and os.date

local d = new Date()
return d
