# value: [[1, 2], 3, [[1, 2], [2, 3]], [4], [8], [6], ["1|1"], {"a": 0}, [3], true]
def among(ids):
    return [max for max in ids if max > 2]


[
    [id for id in [1, 2]],
    sum(id for id in [1, 2]),
    [[id for id in [id, id + 1]] for id in [1, 2]],
    [(lambda x=id: x)() for id in [4]],
    [(lambda id: id * 2)(id + 1) for id in [3]],
    [id for *id, _ in [(6, 0)] for id in id],
    [f"{id}|{id!r}" for id in [1]],
    {min: max for max, min in enumerate("a")},
    among([1, 2, 3]),
    id(1) == id(1),
]
# next run
# value: [5]
id = [5]
[id for id in id]
