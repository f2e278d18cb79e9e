-- error: runtime
-- message has: value has a key that is a boolean; keys must be strings or integers
return { [true] = 1 }
