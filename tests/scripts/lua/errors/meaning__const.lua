-- error: syntax
-- line: 7
-- message: attempt to assign to const variable 'limit'
-- hint: limit is declared <const>: remove <const>, or use another name

local limit <const> = 5
limit = 6
