-- error: runtime
-- line: 7
-- message: attempt to index a nil value (local 'result')
-- hint: calls already wait for their results: remove await

local result = await
return result.items
