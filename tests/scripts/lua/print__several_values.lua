-- prints: "1\tx\ttrue\tnil\tnull\t1.5\n"
print(1, "x", true, nil, json.null, 1.5)
