-- error: runtime
-- line: 6
-- message: attempt to index a nil value (global 'JSON')
-- hint: there is no JSON here; write: json.decode("{}")

return JSON.parse("{}")
