-- error: runtime
-- message has: value.a[2] is -infinity
return { a = { 1, -math.huge } }
