-- error: syntax
-- line: 6
-- message: syntax error near 'function'
-- hint: calls already wait for their results: remove async

async function fetch_all()
  return 1
end
