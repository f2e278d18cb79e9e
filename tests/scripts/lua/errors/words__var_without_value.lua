-- error: syntax
-- line: 6
-- message: syntax error near 'total'
-- hint: variables are declared with local; write: local total

var total
total = 1
