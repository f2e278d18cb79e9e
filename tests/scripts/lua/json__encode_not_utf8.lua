-- error: runtime
-- message has: json.encode: value.a is a string that is not UTF-8
json.encode({ a = "\255" })
