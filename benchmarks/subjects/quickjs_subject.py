"""QuickJS-ng through its Python binding: JavaScript in the same process, with no isolation."""

from __future__ import annotations

import json

import quickjs
import work

context = quickjs.Context()
context.add_callable("add", lambda a, b: a + b)
context.eval("function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2) }")
context.eval("function loop(n) { let t = 0; for (let i = 1; i <= n; i++) t = t + i % 7; return t }")


def rows_in(count: int = work.ROWS, shape: str = "flat") -> float:
    table = work.rows(count, shape)
    total = context.eval("(text) => { let t = 0; for (const r of JSON.parse(text)) t += r.amount; return t }")
    return work.timed(lambda: total(json.dumps(table)))


def rows_out(count: int = work.ROWS, shape: str = "flat") -> float:
    context.eval("(text) => { globalThis.keep = JSON.parse(text) }")(json.dumps(work.rows(count, shape)))
    return work.timed(lambda: json.loads(context.eval("JSON.stringify(keep)")))


START = "import quickjs\nquickjs.Context().eval('1')"

work.serve(
    {
        "start": lambda: work.started(START),
        "fib": lambda: work.timed(lambda: context.eval(f"fib({work.FIB})")),
        "loop": lambda: work.timed(lambda: context.eval(f"loop({work.LOOP})")),
        "empty": lambda: work.repeated(lambda: context.eval("1"), work.EMPTY),
        "call": lambda n=work.CALLS: work.repeated(
            lambda: context.eval(f"for (let i = 0; i < {n}; i++) add(i, 1)"), work.runs_of_calls(n), n
        ),
        "rows_in": rows_in,
        "rows_out": rows_out,
        "result": lambda n: work.repeated(lambda: context.eval(f"'x'.repeat({n})"), work.runs_of_result(n)),
        "fresh": lambda: work.timed(lambda: [quickjs.Context().eval("1") for _ in range(20)], 20),
        "one_off": lambda: work.timed(lambda: [quickjs.Context().eval("1") for _ in range(work.ONE_OFF)], work.ONE_OFF),
    }
)
