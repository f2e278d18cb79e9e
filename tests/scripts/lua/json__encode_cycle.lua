-- error: runtime
-- message has: json.encode: value.t is value again
local t = {}
t.t = t
return json.encode(t)
