# attack: a call by a name that is no tool
# check: off
# error: runtime
# line: 6
# message: NameError: name 'fn.show' is not defined
_call("fn.show", {"x": 1})
