-- attack: jump into the scope of a local that was never set
-- error: syntax
goto skip
local x = 1
::skip::
return x
