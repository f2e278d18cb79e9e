# error: runtime
# line: 4
# message: "KeyError: 'b'"
{"a": 1}["b"]
