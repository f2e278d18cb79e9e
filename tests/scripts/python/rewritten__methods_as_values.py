# value: [["b", "a"], "a", ["A", "b"], ["B", "A"], ["A"], 0]
d = {"a": 3, "b": 1}
words = ["b", "A"]
[sorted(d, key=d.get), max(d, key=d.get), sorted(words, key=str.lower), list(map(str.upper, words)), list(filter(str.isupper, words)), sorted(d, key=d.__getitem__) if False else 0]
