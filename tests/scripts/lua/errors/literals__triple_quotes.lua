-- error: syntax
-- line: 6
-- message: unfinished string near '"'
-- hint: a string over several lines is written [[ … ]], not with """

local text = """
hello
"""
return text
