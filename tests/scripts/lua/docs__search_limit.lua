-- value: 1
#docs.search("a", 1)
