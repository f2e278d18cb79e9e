-- error: runtime
-- message has: json.decode: the text is not UTF-8
json.decode('"\255"')
