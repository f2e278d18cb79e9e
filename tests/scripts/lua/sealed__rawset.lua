-- error: runtime
-- message has: read-only
rawset(table, "concat", nil)
