# error: runtime
# line: 6
# message: AttributeError: 'dict' object has no attribute 'name'
# hint: results are dicts: write x["name"]
r = {"name": "x"}
r.name
