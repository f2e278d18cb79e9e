-- error: runtime
-- line: 6
-- message: attempt to mul a 'string' with a 'number'
-- hint: * only multiplies numbers; text is repeated with string.rep(text, n)

return "=" * 40
