"""What a look at a script costs before it runs: processor time for about 50 lines, in Lua and in Rhai.

python benchmarks/check.py
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from moonbox import Toolbox
from moonbox.check.checker import Checker
from moonbox.check.tools import ScriptTools
from moonbox.languages.registry import LANGUAGES

sys.path.insert(0, str(Path(__file__).resolve().parent))

from slip_worlds import World

ROUNDS = 1_000
LUA = """
local report, totals = {}, {}
for _, order in ipairs(tools.list_orders{status = "open"}) do
  local customer = tools.get_customer{customer_id = order.customer_id}
  local pieces = 0
  for _, line in ipairs(order.lines) do
    pieces = pieces + line.quantity
    if line.price > 50 then
      print(string.format("%s: %d at %.2f", line.sku, line.quantity, line.price))
    end
  end
  totals[customer.name] = (totals[customer.name] or 0) + order.total
  if order.shipped_at == nil and order.status ~= "cancelled" then
    report[#report + 1] = customer.email .. " " .. tostring(order.id)
  end
end
"""
RHAI = """
let report = []; let totals = #{};
for order in list_orders(#{status: "open"}) {
    let customer = get_customer(#{customer_id: order.customer_id});
    let pieces = 0;
    for line in order.lines {
        pieces += line.quantity;
        if line.price > 50.0 {
            print(`${line.sku}: ${line.quantity} at ${line.price}`);
        }
    }
    totals[customer.name] = (totals[customer.name] ?? 0.0) + order.total;
    if order.shipped_at == () && order.status != "cancelled" {
        report.push(customer.email + " " + order.id.to_string());
    }
}
"""


def main() -> int:
    for language, part, end in (("lua", LUA, "return report, totals"), ("rhai", RHAI, "[report, totals]")):
        spoken = LANGUAGES[language]
        view = ScriptTools(Toolbox(World("shop").tools), spoken)
        source = part * 3 + end
        assert Checker(spoken).check(source, view) == ()
        costs = sorted(_cost(Checker(spoken), source, view) for _ in range(ROUNDS))
        best, median = costs[0] * 1e3, costs[len(costs) // 2] * 1e3
        print(f"{language}: best {best:.2f} ms, median {median:.2f} ms, for {len(source.splitlines())} lines")
    return 0


def _cost(checker: Checker, source: str, view: ScriptTools) -> float:
    began = time.process_time()
    checker.check(source, view)
    return time.process_time() - began


if __name__ == "__main__":
    sys.exit(main())
