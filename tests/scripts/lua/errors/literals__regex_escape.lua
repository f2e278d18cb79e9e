-- error: syntax
-- line: 6
-- message: invalid escape sequence near '"a\.'
-- hint: in a Lua pattern write %., not \.; in other strings the backslash is not needed

return ("a.b"):find("a\.b")
