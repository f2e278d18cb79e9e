/** A sample tool: the expenses of a team of twenty, behind a service that takes its time. */

const CATEGORIES = ["travel", "meals", "software", "office"];

/** The items of one employee; always the same ones. */
export function itemsOf(employee) {
  let seed = employee * 7919;
  const next = (below) => {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    return Math.floor((seed / 2 ** 32) * below);
  };
  return Array.from({ length: 100 }, (_, number) => ({
    id: employee * 1000 + number,
    date: `2026-0${1 + next(6)}-${String(1 + next(28)).padStart(2, "0")}`,
    category: CATEGORIES[next(4)],
    cents: 500 + next(50_000),
  }));
}

export const expenses = {
  name: "get_expenses",
  description: "Expense items of one employee (1 to 20) in this half-year.",
  parameters: {
    type: "object",
    properties: { employee_id: { type: "integer", minimum: 1, maximum: 20 } },
    required: ["employee_id"],
  },
  returns: {
    type: "array",
    items: {
      type: "object",
      properties: { id: { type: "integer" }, date: { type: "string" }, category: { type: "string" }, cents: { type: "integer" } },
      required: ["id", "date", "category", "cents"],
    },
  },
  hints: { readOnly: true },
  call: async ({ employee_id }) => {
    await new Promise((resolve) => setTimeout(resolve, 10 + (employee_id % 5) * 5)); // as a service on the network would
    return itemsOf(employee_id);
  },
};

/** What did the team spend on travel in the first quarter? */
export const SCRIPT = `local ids = {}
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
return cents / 100`;

/** Scripts to try. */
export const SAMPLES = {
  travel: SCRIPT,
  categories: `-- One pass over everything, and a small table as the result.
local ids = {}
for id = 1, 20 do ids[id] = id end

local lists = parallel.map(ids, function(id)
  return tools.get_expenses{employee_id = id}
end)

local cents = {}
for _, items in ipairs(lists) do
  for _, item in ipairs(items) do
    cents[item.category] = (cents[item.category] or 0) + item.cents
  end
end
for category, sum in pairs(cents) do
  print(string.format("%-9s %10.2f", category, sum / 100))
end`,
  loop: `-- It is ended after five seconds, or by the button.
-- The page stays alive meanwhile, and globals stay.
rounds = 0
while true do rounds = rounds + 1 end`,
};

/** The answer in plain JavaScript. */
export function travelOfTheFirstQuarter() {
  const items = Array.from({ length: 20 }, (_, index) => itemsOf(index + 1)).flat();
  const travel = items.filter((item) => item.category === "travel" && item.date < "2026-04-01");
  return travel.reduce((sum, item) => sum + item.cents, 0) / 100;
}
