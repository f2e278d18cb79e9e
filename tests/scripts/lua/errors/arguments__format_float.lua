-- error: runtime
-- line: 6
-- message: bad argument #2 to 'format' (number has no integer representation)
-- hint: %d takes integers only: use %.2f for others, or math.floor(x)

return string.format("%d items", 2.5)
