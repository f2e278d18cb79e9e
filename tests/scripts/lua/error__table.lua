-- error: runtime
-- message: it went wrong
error({ message = "it went wrong", code = 5 })
