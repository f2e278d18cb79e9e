# value: [1, ["a", "b"], [["A"], "TypeError: descriptor 'upper' for 'str' objects doesn't apply to a 'int' object"], {"x": 5}, [2, 1], "AttributeError: 'int' object has no attribute 'get'", "a-b", [1]]
def message(f):
    try:
        return f()
    except Exception as e:
        return f"{type(e).__name__}: {e}"
d = {"k": 1}
f = d.get
d = {"k": 2}
made = dict.fromkeys
out = []
push = out.append
push(1)
n = 7
def swap(pairs):
    return sorted(pairs, key=d2.get)
d2 = {1: 9, 2: 3}
[
    f("k"), sorted(["b", "a"], key=str.lower), [list(map(str.upper, ["a"])), message(lambda: list(map(str.upper, [1])))],
    made(["x"], 5), swap([1, 2]), message(lambda: sorted([1], key=n.get)), str.join("-", ["a", "b"]), out,
]
