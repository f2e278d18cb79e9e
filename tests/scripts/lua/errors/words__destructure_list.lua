-- error: syntax
-- line: 7
-- message: ']' expected near ','
-- hint: Lua cannot take a table apart in an assignment; write: local first, second = pair[1], pair[2]

local pair = {1, 2}
const [first, second] = pair
return first
