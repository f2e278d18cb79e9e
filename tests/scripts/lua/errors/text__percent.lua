-- error: runtime
-- line: 6
-- message: attempt to mod a 'string' with a 'number'
-- hint: % works on numbers only; format strings with string.format(format, …)

return "%d items" % 5
