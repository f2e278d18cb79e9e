-- error: syntax
-- line: 6
-- message: unfinished string near '"Ada'
-- hint: the string that begins with " must end on the same line; for several lines use [[ … ]], for a line break \n

local name = "Ada
return name
