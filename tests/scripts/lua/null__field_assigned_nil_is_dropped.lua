-- value: {"b": null}
-- value: {"b": null}
-- value: {}
local r = json.decode('{"a": null, "b": null}')
local first = json.decode('{"a": null, "b": null}')
r.a = nil
local after_one = json.decode(json.encode(r))
rawset(first, "a", nil)
r.b = nil
return after_one, first, r
