-- value: true
-- value: true
local t = json.decode('{"a": null}')
return t.a == null, next(t) == "a"
