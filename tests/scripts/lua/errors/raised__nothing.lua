-- error: runtime
-- line: 6
-- message: error object is a nil value: nil
-- hint: give error a message: error("what went wrong")

error()
