-- value: [{"a": 1, "b": null}, {"a": null, "b": 2}, {"a": 3, "b": null}, {"a": 4, "b": 4}, {"a": 5, "b": null}, {"a": 6, "b": null}, {"a": 7, "b": null}, {"a": null, "b": null}]
return json.decode('[{"a":1,"b":null},{"a":null,"b":2},{"a":3,"b":null},{"a":4,"b":4},{"a":5,"b":null},{"a":6,"b":null},{"a":7,"b":null},{"a":null,"b":null}]')
