-- value: [{"v": 1}, {"v": 1.0}, {"v": "x"}, {"v": null}, {"v": true}, {"v": false}, {"v": -1.5}, {"v": "\"\n"}, {"v": {"$bytes": "/w=="}}]
return { { v = 1 }, { v = 1.0 }, { v = "x" }, { v = json.null }, { v = true }, { v = false }, { v = -1.5 }, { v = "\"\n" }, { v = "\255" } }
