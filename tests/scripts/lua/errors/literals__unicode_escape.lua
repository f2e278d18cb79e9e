-- error: syntax
-- line: 6
-- message: missing '{' near '"\u0'
-- hint: a character by its number is written \u{XXXX} in Lua

return "\u00e9"
