-- value: {"$pairs": [[1, "one"], ["name", "x"]]}
return { "one", name = "x" }
