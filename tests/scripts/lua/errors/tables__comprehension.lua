-- error: syntax
-- line: 7
-- message: unexpected symbol near '['
-- hint: Lua has no list comprehension; build the list in a loop: local out = {} for _, x in ipairs(list) do out[#out + 1] = x end

local list = {1, 2}
local squares = [x * x for x in list]
return squares
