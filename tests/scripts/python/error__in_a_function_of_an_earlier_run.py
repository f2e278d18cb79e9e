def broken():
    return [][0]
# next run
# error: runtime
# line: 5
# message: IndexError: list index out of range

broken()
