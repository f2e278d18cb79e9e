-- value: ["name"]
-- value: "name"
local r = json.decode('{"manager": null, "name": "Ada"}')
local keys = {}
for key in pairs(r) do keys[#keys + 1] = key end
return keys, (next(r))
