-- error: limit array
-- line: 8
-- message: value has 100001 elements; max_array is 100000
-- hint: return less: filter or summarise the data in the script, and return the result

local list = {}
for i = 1, 100001 do list[i] = i end
return list
