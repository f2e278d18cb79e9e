# value: [2, "•", 3, 5]
# calls: add
größe = 2
def f(名前):
    return 名前
[größe, "\N{BULLET}", f(名前=3), add(a=größe, b=3)]
