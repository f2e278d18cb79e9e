-- attack: change a tool's error so that the hint, which names the tool, becomes as long as a string may be
-- error: tool
-- message: it failed
-- calls: fail
local ok, problem = pcall(tools.fail, { retryable = true })
problem.tool, problem.code = ("x"):rep(9000000), "c"
error(problem)
