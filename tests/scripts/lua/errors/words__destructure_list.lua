-- error: syntax
-- line: 7
-- message: ']' expected near ','
-- hint: Lua has no destructuring; write: local first, second = pair[1], pair[2]

local pair = {1, 2}
const [first, second] = pair
return first
