-- prints: "a\nb\n"
-- value: 1
print("a")
print("b")
return 1
