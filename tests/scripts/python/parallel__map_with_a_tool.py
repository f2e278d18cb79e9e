# value: [2, 3]
# calls: add add
parallel_map(add, [1, 2])
