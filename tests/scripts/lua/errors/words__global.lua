-- error: syntax
-- line: 6
-- message: syntax error near 'total'
-- hint: names that are not declared local are global: remove 'global'

global total
total = 5
