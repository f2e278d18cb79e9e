-- error: runtime
-- line: 6
-- message: attempt to mod a 'string' with a 'number'
-- hint: % only divides numbers; text is formatted with string.format(text, …)

return "%d items" % 5
