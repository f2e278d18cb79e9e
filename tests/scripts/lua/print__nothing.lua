-- prints: "\n"
print()
