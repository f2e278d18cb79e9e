# error: runtime
# line: 6
# message: ZeroDivisionError: division by zero
try:
    x = 1
    y = [x, 1/0]
except (KeyError, IndexError) as e:
    y = 2
else:
    z = 3
finally:
    w = 4
