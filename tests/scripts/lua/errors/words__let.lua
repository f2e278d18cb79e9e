-- error: syntax
-- line: 6
-- message: syntax error near 'total'
-- hint: variables are declared with local; write: local total = 0

let total = 0
return total
