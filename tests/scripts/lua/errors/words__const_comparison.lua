-- error: syntax
-- line: 6
-- message: syntax error near 'same'
-- hint: variables are declared with local; write: local same = a == b

const same = a === b
return same
