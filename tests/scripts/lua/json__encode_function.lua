-- error: runtime
-- message has: json.encode: value.f is a function
json.encode({ f = print })
