-- error: runtime
-- message has: json.decode: NaN is not JSON
json.decode("[NaN]")
