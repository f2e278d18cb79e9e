-- error: runtime
-- message has: json.encode: value has a key that is not UTF-8 text
json.encode({ ["\255"] = 1 })
