-- error: limit string
-- line: 6
-- message: string.rep would make a string of 20000000 bytes; max_string is 10000000
-- hint: make shorter strings: work on parts, or keep the parts in a list

local s = ("x"):rep(20000000)
return #s
