-- error: runtime
-- message has: bad argument #2 to 'xpcall'
xpcall(print)
