# error: runtime
# line: 5
# message: ZeroDivisionError: division by zero
a = 1
b = 1 / 0
# next run
# value: 1
a
