-- error: runtime
-- line: 6
-- message: attempt to index a nil value (global 'debug')
-- hint: debug is not available here: use print to look at values, pcall to catch errors

print(debug.traceback())
