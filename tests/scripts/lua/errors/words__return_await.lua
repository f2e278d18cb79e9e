-- error: syntax
-- line: 6
-- message: <eof> expected near 'tools'
-- hint: calls wait for their result by themselves: leave out await

return await tools.search{query = "x"}
