-- error: runtime
-- message has: json.encode: value[1] is NaN
json.encode({ 0 / 0 })
