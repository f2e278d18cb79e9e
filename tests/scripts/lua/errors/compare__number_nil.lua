-- error: runtime
-- line: 7
-- message: attempt to compare number with nil
-- hint: one side of the comparison is nil: test it first, or give it a default such as (x or 0)

local t = {}
return t.a > 3
