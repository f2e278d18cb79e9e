-- error: runtime
-- message: no luck
assert(false, "no luck")
