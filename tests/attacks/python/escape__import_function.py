# attack: imports by a function
# check: off
# error: runtime
# line: 6
# message: NameError: name '__import__' is not defined
__import__("os").system("id")
