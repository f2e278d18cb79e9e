-- error: runtime
-- line: 5
-- message: json.decode: Expecting value at line 1, column 7

local t = json.decode('{"a": }')
return t
