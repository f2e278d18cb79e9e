-- error: runtime
json.null()
