-- error: runtime
-- message has: 42
error(42)
