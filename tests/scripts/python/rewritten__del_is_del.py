# value: [[2, 4], "name 'y' is not defined", "list assignment index out of range", "'gone'", [1, 3], "free", "'tuple' object doesn't support item deletion", [1]]
from collections import Counter, deque
def message(f):
    try:
        return f()
    except Exception as e:
        return str(e)
xs = [1, 2, 3, 4]
del xs[::2]
y = 1
del y
def out_of_range():
    del [1][5]
d = {}
def gone():
    del d["gone"]
q = deque([1, 2, 3])
del q[1]
def local():
    z = 1
    del z
    try:
        return z
    except UnboundLocalError:
        return "free"
def of_a_tuple():
    t = (1, 2)
    del t[0]
c = Counter("a")
del c["missing"]
[xs, message(lambda: y), message(out_of_range), message(gone), list(q), local(), message(of_a_tuple), list(c.values())]
# next run
# error: runtime
# line: 4
# message: NameError: name 'y' is not defined
y
