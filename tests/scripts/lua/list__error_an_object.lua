-- check: off
-- error: runtime
-- line: 5
-- message: list.sort_by: expects a list, got an object with the fields a, b; list.entries(t) makes a list of it
return list.sort_by({ b = 1, a = 2 }, "x")
