-- error: runtime
-- line: 6
-- message: attempt to index a nil value (global 'console')
-- hint: there is no console here; write: print("hello", 5)

console.log("hello", 5)
