-- error: runtime
-- line: 7
-- message: attempt to compare number with nil
-- hint: t.a is nil; where it may be missing write: (t.a or 0)

local t = {}
return t.a > 3
