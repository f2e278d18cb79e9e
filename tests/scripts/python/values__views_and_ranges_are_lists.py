# value: {"i": [["a", 1]], "k": ["a"], "n": [[0], [0, 1]], "r": [0, 1], "v": [1]}
d = {"a": 1}
{"k": d.keys(), "v": d.values(), "i": d.items() if d else None, "r": range(2), "n": [range(n) for n in [1, 2]]}
# next run
# value: [["a"], [2]]
# calls: echo
echo(value=[d.keys(), range(2, 3)])
# next run
# value: {"k": ["a"], "text": "dict_keys(['a'])"}
k = d.keys()
{"k": k, "text": str(k)}
# next run
# error: runtime
# message: value[0][1] is an itertools._grouper, which cannot leave the script: write list(x)
# line: 5
import itertools
list(itertools.groupby([1, 1, 2]))
# next run
# value: "<function f at 0x10>"
"<function f at 0x10>"
# next run
# value: ["<list_iterator object>"]
rows = ["<list_iterator object>"]
rows
# next run
# value: ["dict", "<class 'int'>", "range of keys", "<b>bold</b>"]
[type(d).__name__, str(type(1)), "range of keys", "<b>bold</b>"]
