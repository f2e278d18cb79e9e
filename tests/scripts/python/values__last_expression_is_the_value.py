# value: 42
x = 20
x * 2 + 2
