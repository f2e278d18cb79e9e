-- error: syntax
-- line: 7
-- message: syntax error near '*'
-- hint: Lua has no *=; write: list[#list] = list[#list] * math.max(1, 2)

local list = {1}
list[#list] *= math.max(1, 2)
return list
