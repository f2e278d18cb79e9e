# error: runtime
# line: 6
# message: ZeroDivisionError: division by zero
try:
    for i in [1, 0]:
        y = 1 / i
except ZeroDivisionError:
    y = 2
    raise
