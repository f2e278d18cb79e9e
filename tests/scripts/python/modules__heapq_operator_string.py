# value: [1, [3, 2], "b", 2, 3, "0123456789"]
import heapq, string
from operator import itemgetter as get, add as plus
heap = []
for x in [5, 1, 4]:
    heapq.heappush(heap, x)
rows_ = [{"n": "b", "v": 1}, {"n": "a", "v": 2}]
[heapq.heappop(heap), heapq.nlargest(2, [1, 3, 2]), heapq.nsmallest(1, rows_, key=get("v"))[0]["n"], sorted(rows_, key=get("n"))[0]["v"], plus(1, 2), string.digits]
