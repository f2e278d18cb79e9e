# value: [3, 4, 9, 13, 9, {"k": [null, 1]}]
# calls: add add add add add echo
[add(a=1, b=2), add(3), add(4, 5), add(6, b=7), tools.add(a=8), echo(value={"k": [None, 1]})]
