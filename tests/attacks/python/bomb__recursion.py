# attack: a function that calls itself without end
# error: runtime
# line: 6
# message: RecursionError: maximum recursion depth exceeded
def f(n):
    return f(n + 1)
f(0)
