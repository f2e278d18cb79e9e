-- error: runtime
-- message has: json.decode expects a string, got table
json.decode({})
