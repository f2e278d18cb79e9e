-- error: runtime
-- message has: the table 'math' is read-only
math.answer = 42
