-- error: runtime
-- line: 6
-- message: attempt to index a nil value (global 'Math')
-- hint: the library is called math; write: math.floor(2.5)

return Math.floor(2.5)
