# error: runtime
# line: 5
# message: ZeroDivisionError: division by zero
try:
    1/0
finally:
    y = 2
