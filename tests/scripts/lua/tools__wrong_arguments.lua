-- check: off
-- error: tool
-- message has: a: expected integer
-- calls: add
tools.add{ a = "x" }
