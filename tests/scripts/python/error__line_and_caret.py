# error: runtime
# line: 5
# message: ZeroDivisionError: division by zero
def ratio(a, b):
    return a / b

ratio(1, 0)
