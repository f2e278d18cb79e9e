# attack: recursion on the native stack by way of a callback
# error: runtime
# line: 6
# message: RecursionError: maximum recursion depth exceeded
def f(n):
    return sorted([1, 2], key=lambda x: f(n + 1))
f(0)
