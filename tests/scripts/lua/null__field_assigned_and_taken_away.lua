-- value: {"b": null}
local r = json.decode('{"a": null, "b": null}')
r.a = 1
r.a = nil
return r
