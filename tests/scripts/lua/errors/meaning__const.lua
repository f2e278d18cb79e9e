-- error: syntax
-- line: 7
-- message: attempt to assign to const variable 'limit'
-- hint: limit was declared <const>: declare it without, or use another name

local limit <const> = 5
limit = 6
