-- error: runtime
-- line: 5
-- message: no such order

error({code = "E1", message = "no such order"})
