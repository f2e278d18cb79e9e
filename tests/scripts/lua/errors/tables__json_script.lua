-- error: syntax
-- line: 7
-- message: '}' expected (to close '{' at line 6) near ':'
-- hint: table fields are written with =; write: name = "Ada"

{
  "name": "Ada"
}
