-- error: runtime
-- line: 6
-- message: json.decode expects a string, got table
-- hint: the value is data already: use it without json.decode

local t = json.decode({})
return t
