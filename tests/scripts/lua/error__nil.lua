-- error: runtime
-- message has: nil
error(nil)
