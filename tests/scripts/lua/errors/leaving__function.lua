-- error: runtime
-- line: 7
-- message: value is a function, which cannot leave the script
-- hint: total is a function; to return its result write: return total()

local function total() return 5 end
return total
