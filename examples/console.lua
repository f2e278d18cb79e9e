-- Who of the first six spent most on meals?
-- Press Run and answer the approval. Then change
-- the numbers, run it again, and watch the timeline.
local ids = {1, 2, 3, 4, 5, 6}
local totals = parallel.map(ids, function(id)
  local cents = 0
  local items = tools.get_expenses{employee_id = id}
  for _, item in ipairs(items) do
    local meal = item.category == "meals"
    cents = cents + (meal and item.cents or 0)
  end
  return {employee_id = id, cents = cents}
end, {concurrency = 3})

local function most(a, b) return a.cents > b.cents end
table.sort(totals, most)
print(tools.pay_back(totals[1]))
return totals
