-- error: runtime
-- message has: attempt to compare
table.sort({ 1, "a" })
