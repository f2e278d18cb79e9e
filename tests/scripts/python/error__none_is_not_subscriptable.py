# error: runtime
# line: 5
# message: TypeError: 'NoneType' object is not subscriptable
# hint: the value is None: ask first, as in x["a"] if x else None
{"a": None}["a"]["b"]
