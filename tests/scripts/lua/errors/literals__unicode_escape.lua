-- error: syntax
-- line: 6
-- message: missing '{' near '"\u0'
-- hint: Lua writes a Unicode character as \u{XXXX}

return "\u00e9"
