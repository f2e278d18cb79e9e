-- error: syntax
-- line: 7
-- message: function arguments expected near '}'
-- hint: table fields are written with =; write: id = id

local id = 5
return {id: id}
