-- check: off
-- error: runtime
-- line: 5
-- message: list.map: expects the name of a field or a function, got nil
return list.map({ 1 })
