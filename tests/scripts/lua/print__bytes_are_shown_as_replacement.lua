-- prints: "a\ufffdb\n"
print("a\255b")
