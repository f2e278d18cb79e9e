x = 20
# next run
# prints: "20\n"
print(x)
