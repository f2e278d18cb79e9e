-- error: runtime
-- line: 5
-- message: json.decode: Expecting value: line 1 column 7 (char 6)

local t = json.decode('{"a": }')
return t
