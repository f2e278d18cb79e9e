-- error: runtime
-- line: 6
-- message: bad argument #1 to 'for iterator' (table expected, got string)
-- hint: pairs goes over tables, and this is a string

for k, v in pairs("abc") do print(k) end
