# prints: "a|1|None\nb"
print("a", 1, None, sep="|")
print("b", end="")
