-- error: runtime
-- line: 7
-- message: attempt to index a nil value (local 'result')
-- hint: calls wait for their result by themselves: leave out await

local result = await
return result.items
