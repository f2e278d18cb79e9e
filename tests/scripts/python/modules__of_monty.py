# value: [{"a": null}, 2.0, ["1", "22"], [["a", 2]], [1, 2], 6, "2024-01-31"]
import json, math, re, collections, itertools, functools, datetime, random
random.seed(1)
[json.loads(json.dumps({"a": None})), math.sqrt(4), re.findall(r"\d+", "a1b22"), collections.Counter("aab").most_common(1), list(itertools.chain([1], [2])), functools.reduce(lambda a, b: a + b, [1, 2, 3]), datetime.date(2024, 1, 31).isoformat()]
