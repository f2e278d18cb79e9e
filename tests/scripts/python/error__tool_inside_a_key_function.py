# error: check
# line: 5
# message: a tool cannot be called inside map, filter, sorted, min or max
# hint: call it first, in a list comprehension: [add(…) for x in items]
sorted([2, 1], key=lambda x: add(x))
