# error: runtime
# line: 5
# message: TypeError: string indices must be integers, not 'str'
# hint: it is text; if that is JSON, json.loads(text) makes data of it
'{"a": 1}'["a"]
