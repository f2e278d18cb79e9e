# error: runtime
# line: 6
# message: ZeroDivisionError: division by zero
try:
    try:
        1/0
    finally:
        y = 2
except KeyError:
    z = 3
