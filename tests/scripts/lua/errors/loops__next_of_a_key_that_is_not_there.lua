-- error: runtime
-- line: 6
-- message: invalid key to 'next'
-- hint: next(t) begins, and next(t, key) goes on from a key that it returned: the table never had this one

return next({ a = 1, b = 2 }, "c")
