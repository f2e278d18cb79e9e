-- error: runtime
-- line: 7
-- message: attempt to concatenate a boolean value (local 'done')
-- hint: done must be converted to a string first: tostring(done)

local done = true
return "done: " .. done
