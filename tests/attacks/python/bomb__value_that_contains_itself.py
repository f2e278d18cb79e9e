# attack: a value that contains itself
# value: [1, "[...]"]
x = [1]
x.append(x)
x
