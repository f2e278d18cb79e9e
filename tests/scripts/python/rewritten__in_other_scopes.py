# value: [[[11, 12], [21, 22]], 5, [3, 4], "b"]
# calls: add add add add add add
ys = [parallel_map(lambda i: add(i, y), [1, 2]) for y in [10, 20]]
def first(xs):
    return next((len(x) for x in map(str, xs)), None)
async def both():
    pairs = [add(i, 2) for i in [1, 2]]
    return pairs
best = {"a": 1, "b": 2}
[ys, first([12345]), await both(), max(best.items(), key=lambda kv: kv[1])[0]]
