-- check: off
-- error: runtime
-- line: 5
-- message: list.sort_by: 'a' is a number in item 1 and a string in item 2; convert one of them in a function
return list.sort_by({ { a = 1 }, { a = "x" } }, "a")
