-- error: runtime
null.x = 1
