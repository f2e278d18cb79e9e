-- error: runtime
-- message has: interval is empty
math.random(5, 1)
