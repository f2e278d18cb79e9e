-- error: syntax
-- line: 6
-- message: syntax error near 'count'
-- hint: variables are declared with local, without a type; write: local count = 5

int count = 5
return count
