-- error: runtime
-- message has: the table 'string' is read-only: keep 'upper' in a variable of your own
string.upper = nil
