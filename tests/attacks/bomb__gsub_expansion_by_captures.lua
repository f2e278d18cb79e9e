-- attack: blow a string up with captures of the whole
-- error: limit string
local s = ("x"):rep(5000)
while true do s = s:gsub("^.*$", "%0%0%0%0%0%0%0%0") end
