-- error: runtime
-- message has: array expects a table, got number
array(5)
