"""A run and a failure to write down."""

from __future__ import annotations

from typing import Any

from moonbox.audit.records import Call, CallError, Run, Usage
from moonbox.errors import ScriptError
from moonbox.values import pack


def make_run(id: str = "run-1", **changes: Any) -> Run:
    calls = (
        Call(
            1,
            "get_expenses",
            {"employee_id": 1},
            packed=pack([{"amount": 9.5}]),
            started=1000.0,
            duration=0.02,
            bytes_in=17,
        ),
        Call(2, "get_expenses", {"employee_id": 2}, packed=pack([]), started=1000.1, duration=0.04, bytes_out=2),
        Call(3, "send", {"to": 5}, "error", error=CallError("invalid", "to: not a string"), started=1000.2),
    )
    fields: dict[str, Any] = {
        "source": "-- sum\nreturn total",
        "values": (41250.0,),
        "calls": calls,
        "usage": Usage(wall=0.5, cpu=0.1, peak_memory=4096, calls=3, bytes_in=100, bytes_out=200),
        "started": 1000.0,
        "repl": "r1",
    }
    return Run(id=id, **{**fields, **changes})


FAILURE = ScriptError(
    "runtime",
    "attempt to index a nil value (local 'row')",
    line=3,
    hint="check `if row then` first",
    traceback="  3 | return row.name\n    |        ^",
)
