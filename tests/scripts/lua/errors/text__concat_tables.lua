-- error: runtime
-- line: 7
-- message: invalid value (table) at index 1 in table for 'concat'
-- hint: table.concat joins texts and numbers: collect the text of each element in a new list first

local list = {{n = 1}}
return table.concat(list, ", ")
