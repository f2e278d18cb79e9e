-- prints: "1\tx\ttrue\tnil\tnull\t1.5\n"
print(1, "x", true, nil, null, 1.5)
