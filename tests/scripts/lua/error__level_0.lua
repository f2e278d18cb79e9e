-- error: runtime
-- message: boom
error("boom", 0)
