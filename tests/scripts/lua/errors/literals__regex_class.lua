-- error: syntax
-- line: 6
-- message: invalid escape sequence near '"\d'
-- hint: Lua patterns are not regular expressions: write %d, not \d

local year = ("in 2024"):match("\d+")
return year
