-- error: runtime
-- line: 6
-- message: attempt to mul a 'string' with a 'number'
-- hint: * works on numbers only; repeat a string with string.rep(s, n)

return "=" * 40
