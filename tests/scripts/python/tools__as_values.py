# value: [2, 3]
# calls: add add
f = add
call = {"f": tools.add}
[f(1), call["f"](2)]
