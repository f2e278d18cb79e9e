-- error: runtime
-- line: 7
-- message: bad argument #2 to 'format' (number expected, got string)
-- hint: %d and %f take numbers: use %s for strings, or tonumber(s)

local n = "many"
return string.format("%d items", n)
