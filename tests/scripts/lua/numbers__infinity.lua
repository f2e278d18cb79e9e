-- error: runtime
-- message has: value is infinity, which is not a JSON number
return 1 / 0
