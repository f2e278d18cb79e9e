# check: off
# error: runtime
# line: 5
# message: TypeError: add() takes 2 positional arguments but 3 were given
add(1, 2, 3, b=4)
