-- error: runtime
-- message has: value[2].f is a function
return 1, { f = print }
