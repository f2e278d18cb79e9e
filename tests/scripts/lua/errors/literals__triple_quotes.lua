-- error: syntax
-- line: 6
-- message: unfinished string near '"'
-- hint: text over several lines stands between [[ and ]], not """

local text = """
hello
"""
return text
