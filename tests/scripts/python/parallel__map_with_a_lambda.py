# value: ["row 1", "row 2", "row 3"]
# calls: rows rows rows
rows_ = parallel_map(lambda i: rows(count=i)[-1]["name"], [1, 2, 3])
rows_
