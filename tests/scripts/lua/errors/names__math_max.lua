-- error: runtime
-- line: 6
-- message: attempt to index a nil value (global 'Math')
-- hint: the library is called math; write: math.max(1, 2)

return Math.MAX(1, 2)
