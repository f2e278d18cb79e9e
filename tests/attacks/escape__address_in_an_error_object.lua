-- attack: have the host report an address as an error's text
-- error: tool
-- message: table: 0x000001
-- calls: fail
local _, e = pcall(tools.fail)
e.message = {}
error(e)
