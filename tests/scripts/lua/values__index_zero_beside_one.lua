-- value: {"$pairs": [[0, "a"], [1, "b"]]}
return {[0] = "a", [1] = "b"}
