# value: [[4, 6], [4, 6], 5]
# calls: add add add add
def add(x):
    return 2 * tools.add(a=x)
[parallel_map(lambda x: add(x), [1, 2]), parallel_map(add, [1, 2]), 5]
