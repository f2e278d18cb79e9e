# error: runtime
# line: 5
# message: ZeroDivisionError: division by zero
try:
    1/0
except KeyError:
    y = 2
