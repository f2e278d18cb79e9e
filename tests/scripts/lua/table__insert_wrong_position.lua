-- error: runtime
-- message has: position out of bounds
table.insert({}, 5, 1)
