-- attack: double a list and a text with list until the memory is full, and catch it
-- limits: {"max_memory": 8000000}
-- error: limit memory
local items = { 1 }
while true do
  pcall(function()
    local size = #items
    for index = 1, size do items[size + index] = index end
    list.unique(list.sort_by(items))
  end)
end
