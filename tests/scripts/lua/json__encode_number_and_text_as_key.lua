-- error: runtime
-- line: 4
-- message: json.encode: value.a has the key 2 both as a number and as text
local text = json.encode({ a = { ["2"] = "text", [2] = "number", x = 1 } })
