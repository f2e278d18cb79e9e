-- attack: forge the forms by which the wire carries bytes, maps and rows
-- value: [{"\u0001b": 5}, {"\u0001m": 5}, {"\u0001t": [["a"], [1]]}, {"\u0001b": "é漢"}]
-- calls: echo
return tools.echo{ value = { { ["\1b"] = 5 }, { ["\1m"] = 5 }, { ["\1t"] = { { "a" }, { 1 } } }, { ["\1b"] = "é漢" } } }
