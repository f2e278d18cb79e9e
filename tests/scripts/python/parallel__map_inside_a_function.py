# value: 9
# calls: add add add
def total(ids):
    return sum(parallel_map(lambda i: add(i), ids))
total([1, 2, 3])
