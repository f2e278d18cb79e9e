# error: runtime
# line: 9
# message: ZeroDivisionError: division by zero
try:
    1/0
except ZeroDivisionError:
    y = 2
z = 1
1/0
