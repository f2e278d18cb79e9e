-- error: syntax
-- line: 6
-- message: syntax error near 'tools'
-- hint: calls already wait for their results: remove await

await tools.search{query = "x"}
