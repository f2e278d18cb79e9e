-- error: runtime
-- message has: json.decode: Expecting
json.decode("{bad}")
