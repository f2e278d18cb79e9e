-- error: runtime
-- line: 6
-- message: invalid value (boolean) at index 1 in table for 'concat'
-- hint: table.concat joins only strings and numbers: use tostring on each element first

return table.concat({true, false}, ", ")
