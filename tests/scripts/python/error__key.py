# error: runtime
# line: 5
# message: "KeyError: 'b'"
# hint: where a key may be missing write x.get("b")
{"a": 1}["b"]
