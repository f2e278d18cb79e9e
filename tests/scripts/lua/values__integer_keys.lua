-- value: {"$pairs": [[100, "x"]]}
return { [100] = "x" }
