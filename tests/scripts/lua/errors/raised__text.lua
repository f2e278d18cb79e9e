-- error: runtime
-- line: 5
-- message: the list is empty

error("the list is empty")
