-- error: tool
-- line: 6
-- message: "invalid arguments for add:\n- a: expected integer, got \"x\" (string)\nvalid parameters: a* (integer), b (integer, default 1)"
-- calls: add

local n = tools.add{a = "x"}
return n
