-- value: {"a": [{"b": null, "c": [null, {"d": null}]}], "e": null}
-- value: true
local r = json.decode('{"a": [{"b": null, "c": [null, {"d": null}]}], "e": null}')
return r, r.a[1].c[1] == nil and r.a[1].c[2].d == nil and not r.e
