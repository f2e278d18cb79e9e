# error: runtime
# line: 5
# message: TypeError: the JSON object must be str, bytes or bytearray, not dict
# hint: the value is data already: use it without json.loads
json.loads({"a": 1})
