-- error: syntax
-- line: 6
-- message: malformed number near '1_'
-- hint: numbers have no _ between digits: remove it

return 1_000_000
