-- error: runtime
-- message has: the option '%p' is not available
return string.format("%p", {})
