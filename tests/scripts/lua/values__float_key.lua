-- error: runtime
-- message has: value.t has a key that is a float
return { t = { [1.5] = 1 } }
