-- error: runtime
-- line: 7
-- message: attempt to concatenate a table value (local 'list')
-- hint: convert a table to a string with json.encode(list), a list with table.concat(list, ", ")

local list = {1, 2}
return "list: " .. list
