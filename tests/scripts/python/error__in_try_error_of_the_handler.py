# error: runtime
# line: 7
# message: ValueError: other
try:
    1/0
except ZeroDivisionError as e:
    raise ValueError("other")
finally:
    y = 2
