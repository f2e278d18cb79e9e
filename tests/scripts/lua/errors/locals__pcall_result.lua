-- error: runtime
-- line: 7
-- message: attempt to index a boolean value (local 'result')
-- hint: the first result of pcall is true or false; write: local ok, result = pcall(…)

local result = pcall(tostring, 5)
return result.value
