-- error: runtime
-- message has: value is NaN (not a number), which is not a JSON number
return 0 / 0
