-- value: ["1", "nil", "nil"]
parallel.map(json.decode('[1, null, null]'), function(v) return tostring(v) end)
