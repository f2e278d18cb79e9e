-- error: syntax
-- line: 6
-- message: '}' expected near ':'
-- hint: table fields are written with =; write: name = "Ada"

return {"name": "Ada", "tags": {}}
