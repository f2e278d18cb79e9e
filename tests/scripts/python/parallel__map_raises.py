# error: tool
# line: 5
# message: no 2
# calls: add fail add
parallel_map(lambda i: fail(message=f"no {i}") if i == 2 else add(i), [1, 2, 3])
