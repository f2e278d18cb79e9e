-- error: syntax
-- line: 6
-- message: <eof> expected near 'tools'
-- hint: calls already wait for their results: remove await

return await tools.search{query = "x"}
