# attack: imports inside of eval
# error: runtime
# line: 5
# message: NameError: name '__import__' is not defined
eval("__import__('os')")
