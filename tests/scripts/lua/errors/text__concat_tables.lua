-- error: runtime
-- line: 7
-- message: invalid value (table) at index 1 in table for 'concat'
-- hint: table.concat joins only strings and numbers: build a list of strings first

local list = {{n = 1}}
return table.concat(list, ", ")
