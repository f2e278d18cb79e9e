# A script for moonbox: moonbox run examples/expenses.py --tools examples/demo.py
# What did the team spend on travel in the first quarter?
def travel(id):
    items = get_expenses(employee_id=id)
    return sum(item["cents"] for item in items if item["category"] == "travel" and item["date"] < "2026-04-01")


sum(parallel_map(travel, range(1, 21))) / 100
