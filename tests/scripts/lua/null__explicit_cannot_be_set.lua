-- error: runtime
json.null.x = 1
