-- error: runtime
-- line: 7
-- message: attempt to index a boolean value (local 'result')
-- hint: pcall returns first whether it went well; write: local ok, result = pcall(…)

local result = pcall(tostring, 5)
return result.value
