-- error: runtime
-- message has: read-only
table.insert(json, 1)
