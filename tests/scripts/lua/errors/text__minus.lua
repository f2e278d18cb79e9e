-- error: runtime
-- line: 6
-- message: attempt to sub a 'string' with a 'number'
-- hint: text is no number here: convert it with tonumber(text)

return "abc" - 1
