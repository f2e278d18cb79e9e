-- check: off
-- error: runtime
-- line: 5
-- message: list.round: expects a number, got string
return list.round("2")
