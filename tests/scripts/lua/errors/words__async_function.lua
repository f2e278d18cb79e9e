-- error: syntax
-- line: 6
-- message: syntax error near 'function'
-- hint: calls wait for their result by themselves: leave out async

async function fetch_all()
  return 1
end
