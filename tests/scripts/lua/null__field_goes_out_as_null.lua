-- value: {"manager": null, "name": "Ada"}
-- value: {"manager": null, "name": "Ada"}
-- value: "{\"manager\":null,\"name\":\"Ada\"}"
-- value: "{\n \"manager\": null,\n \"name\": \"Ada\"\n}"
-- prints: "{\"manager\":null,\"name\":\"Ada\"}\n"
-- calls: echo
local r = json.decode('{"manager": null, "name": "Ada"}')
print(r)
return r, tools.echo{ value = r }, json.encode(r), json.encode(r, { indent = 1 })
