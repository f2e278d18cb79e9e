-- check: off
-- error: runtime
-- line: 5
-- message: list.sum: no item has the field 'c'; the first has: a, b
return list.sum({ { a = 1, b = 2 } }, "c")
