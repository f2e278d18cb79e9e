# error: runtime
# line: 4
# message: ValueError: no rows
raise ValueError("no rows")
