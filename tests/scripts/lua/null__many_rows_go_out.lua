-- value: [{"a": 1, "b": null}, {"a": null, "b": 2}, {"a": null, "b": null}, {"a": 4, "b": 4}, {"a": 5, "b": null}, {"a": 6}, {"a": 7, "b": null}, {"a": 8, "b": null, "c": 1}, {"a": 9, "b": null}]
local rows = json.decode('[{"a":1,"b":null},{"a":null,"b":2},{"a":null,"b":null},{"a":4,"b":4},{"a":5,"b":null},{"a":6,"b":null},{"a":7,"b":null},{"a":8,"b":null},{"a":9,"b":null}]')
rows[6].b = nil
rows[8].c = 1
return rows
