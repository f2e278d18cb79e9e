-- check: off
-- error: runtime
-- line: 5
-- message: list.max_by: 'a' of item 1 is a table; only numbers, strings and booleans have an order
return list.max_by({ { a = {} } }, "a")
