-- What did the team spend on travel in the first quarter?
local ids = {}
for id = 1, 20 do ids[id] = id end

local totals = parallel.map(ids, function(id)
  local sum = 0
  for _, item in ipairs(tools.get_expenses{employee_id = id}) do
    if item.category == "travel" and item.date < "2026-04-01" then
      sum = sum + item.cents
    end
  end
  return sum
end, {concurrency = 5})

local cents = 0
for _, sum in ipairs(totals) do cents = cents + sum end
return cents / 100
