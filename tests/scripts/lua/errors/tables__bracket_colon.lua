-- error: syntax
-- line: 6
-- message: '=' expected near ':'
-- hint: table fields are written with =; write: ["a b"] = 1

return {["a b"]: 1}
