-- error: runtime
-- line: 4
-- message has: invalid value (nil) at index 2 in table for 'concat'
return table.concat(json.decode('["a", null]'), ",")
