# value: {"$pairs": [[1, "a"], [3, "b"], ["x", null]]}
{1: "a", 3: "b", "x": None}
