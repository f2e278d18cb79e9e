-- attack: double a string until the memory is full, catching the failure
-- error: limit memory
local s = "x"
while true do pcall(function() s = s .. s end) end
