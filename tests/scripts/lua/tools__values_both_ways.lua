-- value: {"a": [1, 2.5, null, [], {}], "s": "é"}
-- calls: echo
tools.echo{ value = { a = { 1, 2.5, null, array{}, {} }, s = "é" } }
