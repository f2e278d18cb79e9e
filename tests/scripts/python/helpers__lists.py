# value: [["b", "a", "c"], {"$pairs": [[1, 2], [2, 1]]}, {"$pairs": [[1, 2], [2, 1]]}, 5, "a", "b", [1, 2], 2, "a", null]
data = [{"n": "a", "v": 2, "g": 1}, {"n": "b", "v": 3, "g": 1}, {"n": "c", "v": None, "g": 2}]
[[r["n"] for r in sort_by(data, "-v")], {k: len(v) for k, v in group_by(data, "g").items()}, count_by(data, "g"), sum_by(data, "v"), min_by(data, "v")["n"], max_by(data, lambda r: r["v"])["n"], unique([1, 1, 2]), len(unique(data, "g")), take(data, 1)[0]["n"], min_by([], "x")]
