-- error: syntax
-- line: 6
-- message: syntax error near 'tools'
-- hint: calls wait for their result by themselves: leave out await

await tools.search{query = "x"}
