-- error: runtime
-- line: 6
-- message: bad argument #1 to 'for iterator' (table expected, got string)
-- hint: pairs needs a table, but this is a string

for k, v in pairs("abc") do print(k) end
