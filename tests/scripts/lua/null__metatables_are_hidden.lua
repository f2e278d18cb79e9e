-- features: metatables
-- value: [true, true]
return { getmetatable(json.decode('{"a": null}')) == nil, getmetatable(json.decode('[null]')) == nil }
