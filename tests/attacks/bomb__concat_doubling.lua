-- attack: double a string until the memory is full
-- error: limit memory
local s = "x"
while true do s = s .. s end
