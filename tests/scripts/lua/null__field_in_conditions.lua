-- value: [true, true, true, false, false, "none"]
-- calls: echo
local r = tools.echo{ value = { manager = json.null, name = "Ada" } }
return { not r.manager, r.manager == nil, r.manager == null, r.manager ~= nil, r.manager ~= null, r.manager or "none" }
