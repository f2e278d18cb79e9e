# value: [2, 13, 14]
# calls: add add add add add
def work(i):
    a = add(i)
    if a > 2:
        return add(a, 10)
    return a
parallel_map(work, [1, 2, 3])
