-- error: syntax
-- line: 7
-- message: <name> expected near '5'
-- hint: table fields are written with =; write: limit = 5

local query = {
  limit: 5,
  text: "x"
}
return query
