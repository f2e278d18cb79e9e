-- error: runtime
-- line: 6
-- message: index is nil

local r = json.decode('{"a": null}')
r[r.a] = 1
