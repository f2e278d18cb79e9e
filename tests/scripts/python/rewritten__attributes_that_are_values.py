# value: [3.141592653589793, 5, ["a", "b"], 5, [1, 2], {"get": 3}, [3, 4], "row"]
import math
from datetime import timedelta
class P:
    def __init__(self):
        self.items, self.get, self.key = ["b", "a"], 3, "row"
p = P()
a = timedelta(days=2)
def keep(key):
    return key
[
    max(math.pi, 3), min(math.inf, 5), sorted(p.items), max(a.days, 5),
    sorted([2, 1], key=None), {"get": p.get}, list(map(int, ["3", "4"])), keep(key=p.key),
]
