-- error: runtime
-- line: 7
-- message: bad argument #2 to 'format' (number expected, got string)
-- hint: %d and %f take numbers: use %s for text, or tonumber(text)

local n = "many"
return string.format("%d items", n)
