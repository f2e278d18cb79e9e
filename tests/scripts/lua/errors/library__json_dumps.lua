-- error: runtime
-- line: 6
-- message: attempt to call a nil value (field 'dumps')
-- hint: there is no json.dumps; write: json.encode({a = 1})

return json.dumps({a = 1})
