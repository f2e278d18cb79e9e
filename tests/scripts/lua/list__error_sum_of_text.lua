-- check: off
-- error: runtime
-- line: 5
-- message: list.sum: the value of item 2 is a string, not a number
return list.sum { 1, "2" }
