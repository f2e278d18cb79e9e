-- error: limit memory
-- message: the script needed more memory than max_memory = 67108864 bytes
-- hint: process the data in parts and keep only what is needed; build long strings with table.concat, not with .. in a loop

local list = {}
for i = 1, 1e9 do
  list[i] = {i}
end
