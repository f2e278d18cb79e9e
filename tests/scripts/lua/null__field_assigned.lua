-- value: {"a": 1, "b": null}
-- value: {"a": 1, "b": 2}
-- value: {"a": 1, "b": 2, "c": 3}
local r = json.decode('{"a": null, "b": null}')
local copies = {}
local function note() copies[#copies + 1] = json.decode(json.encode(r)) end
r.a = 1
note()
r.b = 2
note()
r.c = 3
note()
return table.unpack(copies)
