-- error: syntax
-- line: 6
-- message: syntax error near 'limit'
-- hint: variables are declared with local; write: local limit = 5

const limit = 5
return limit
