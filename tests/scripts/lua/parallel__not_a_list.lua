-- error: runtime
-- message has: parallel expects a list of functions, got number
parallel(5)
