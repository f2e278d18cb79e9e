-- error: runtime
-- message has: json.decode: nested too deeply
json.decode(("["):rep(100000))
