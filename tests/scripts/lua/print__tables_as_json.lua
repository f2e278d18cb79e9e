-- prints: "{\"a\":[1,2],\"b\":{}}\n[]\n"
print({ a = { 1, 2 }, b = {} })
print(array{})
