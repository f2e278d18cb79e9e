-- Who of the first six spent most on meals?
-- Press Run and answer the approval. Then change
-- the numbers, run it again, and watch the timeline.
local ids = {1, 2, 3, 4, 5, 6}
local totals = parallel.map(ids, function(id)
  local cents = 0
  for _, item in ipairs(tools.get_expenses{employee_id = id}) do
    if item.category == "meals" then cents = cents + item.cents end
  end
  return {employee = id, cents = cents}
end, {concurrency = 3})

table.sort(totals, function(a, b) return a.cents > b.cents end)
print(tools.pay_back{employee_id = totals[1].employee, cents = totals[1].cents})
return totals
