"""What the fixed order of keys costs: `pairs` and `next` in a worker, against those of plain Lua in this process.

Each figure is the processor time of a script in a worker, divided by that of the same loop in plain Lua; the least of
several rounds that alternate. `python benchmarks/key_order.py [rounds]`
"""

from __future__ import annotations

import sys
import time

from lupa import lua54

from moonbox import Limits, Sandbox

SETUP = """
rows, record, map, few = {}, {id = 1, name = "x", amount = 2.5, status = "open", created = "2026"}, {}, {1, 2, 3, 4, 5}
for i = 1, 200000 do rows[i] = i end
for i = 1, 100000 do map["key" .. i * 7919 % 100000] = i end
"""
CASES = {
    "sequence of 200,000, pairs": "for i = 1, 10 do for k, v in pairs(rows) do end end",
    "sequence of 200,000, pairs, sum": "local s = 0 for i = 1, 10 do for k, v in pairs(rows) do s = s + v end end",
    "sequence of 5, pairs": "for i = 1, 200000 do for k, v in pairs(few) do end end",
    "record of 5 fields, pairs": "for i = 1, 200000 do for k, v in pairs(record) do end end",
    "map of 100,000 keys, pairs": "for i = 1, 2 do for k, v in pairs(map) do end end",
    "map of 100,000 keys, next": "for k, v in next, map do end",
    "sequence of 200,000, next": "for k, v in next, rows do end",
}


def main(rounds: int = 7) -> None:
    lua = lua54.LuaRuntime()
    lua.execute(SETUP)
    limits = Limits(timeout=60, max_memory=256 * 1024 * 1024)
    print("| traversal | process | inline |\n|---|---|---|")
    with Sandbox(limits=limits) as box, Sandbox(limits=limits, isolation="inline") as inline:
        repls = box.repl(), inline.repl()
        for repl in repls:
            repl.run(SETUP).unwrap()
        for name, source in CASES.items():
            best = [float("inf")] * 3
            for _ in range(rounds):
                began = time.thread_time()
                lua.execute(source)
                best[0] = min(best[0], time.thread_time() - began)
                for index, repl in enumerate(repls, 1):
                    run = repl.run(source)
                    run.unwrap()
                    best[index] = min(best[index], run.usage.cpu)
            print(f"| {name} | {best[1] / best[0]:.1f}x | {best[2] / best[0]:.1f}x |")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
