-- error: syntax
-- line: 7
-- message: syntax error near '+'
-- hint: Lua has no +=; write: stats.total = stats.total + 5

local stats = {total = 0}
stats.total += 5
return stats
