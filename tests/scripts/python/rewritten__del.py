# value: [{"b": 2, "c": {}}, [2]]
d = {"a": 1, "b": 2, "c": {"x": 1}}
xs = [1, 2, 3, 4]
del d["a"], d["c"]["x"]
del xs[0]
del xs[1:]
y = 1
del y
[d, xs]
