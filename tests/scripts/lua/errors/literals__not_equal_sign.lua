-- error: syntax
-- line: 7
-- message: <eof> expected near '≠'
-- hint: write ~=, not ≠

local x = 1
return x ≠ 2
