-- error: syntax
-- line: 6
-- message: syntax error near '1'
-- hint: did you mean return?

retrun 1
