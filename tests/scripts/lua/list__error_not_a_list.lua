-- check: off
-- error: runtime
-- line: 5
-- message: list.map: expects a list, got nil
return list.map(nil, "x")
