# error: runtime
# line: 6
# message: ZeroDivisionError: division by zero
def f(x):
    if x:
        return 1 / 0
    return 1
def g():
    return f(1)
try:
    f(0)
    g()
except KeyError:
    y = 2
