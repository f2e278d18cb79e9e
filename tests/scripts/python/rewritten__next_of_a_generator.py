# value: [2, null]
[next(x for x in [1, 2, 3] if x > 1), next((x for x in [1] if x > 1), None)]
