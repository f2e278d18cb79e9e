# attack: calls what only the engine may ask for
# check: off
# error: runtime
# line: 6
# message: NameError: name 'sys.time' is not defined
_call("sys.time", {})
