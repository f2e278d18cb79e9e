-- error: runtime
-- line: 6
-- message: line 5: inner

local ok, problem = pcall(function() error("inner") end)
error(problem)
