-- check: off
-- error: runtime
-- line: 5
-- message: list.take: expects how many, a whole number of at least 0, got -1
return list.take({ 1 }, -1)
