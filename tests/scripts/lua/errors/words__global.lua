-- error: syntax
-- line: 6
-- message: syntax error near 'total'
-- hint: a name that is not declared local is global: leave out global

global total
total = 5
