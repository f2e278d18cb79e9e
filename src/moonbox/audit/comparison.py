"""The comparison of two runs: figures, the lines of their scripts, and their calls side by side."""

from __future__ import annotations

import difflib
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from moonbox.audit.compact import short

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from moonbox.audit.records import Call, Run

__all__ = ["CallPair", "Comparison", "compare"]

_MAX_LINES = 2_000
_MAX_CALLS = 500
_CONTEXT = 3
_ARGUMENT_CHARS = 200


@dataclass(frozen=True, slots=True)
class CallPair:
    """A call that both runs made, or that only one did: then the other's status and duration are None."""

    tool: str
    arguments: str
    a_status: str | None
    a_duration: float | None
    b_status: str | None
    b_duration: float | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """What differs between the run `a` and the run `b`."""

    figures: dict[str, tuple[float, float]]
    diff: tuple[tuple[str, str], ...]
    """Lines of the scripts with "+", "-" or " " in front; empty where the scripts are the same."""
    calls: tuple[CallPair, ...]
    hidden_calls: int
    """Calls that are left out here because there are too many."""
    same_values: bool
    same_output: bool

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def compare(a: Run, b: Run) -> Comparison:
    """Compare two runs, the earlier first."""
    hidden = max(0, len(a.calls) - _MAX_CALLS) + max(0, len(b.calls) - _MAX_CALLS)
    return Comparison(
        figures=_figures(a, b),
        diff=tuple(_diff(a.source, b.source)),
        calls=tuple(_pairs(a.calls[:_MAX_CALLS], b.calls[:_MAX_CALLS])),
        hidden_calls=hidden,
        same_values=a.values == b.values,
        same_output=a.output == b.output,
    )


def _figures(a: Run, b: Run) -> dict[str, tuple[float, float]]:
    def of(run: Run) -> dict[str, float]:
        usage = run.usage
        return {
            "wall": usage.wall,
            "cpu": usage.cpu,
            "operations": usage.operations or 0,
            "peak_memory": usage.peak_memory,
            "calls": len(run.calls),
            "failed_calls": sum(not call.ok for call in run.calls),
            "bytes_in": usage.bytes_in,
            "bytes_out": usage.bytes_out,
            "output": len(run.output),
        }

    first, second = of(a), of(b)
    return {name: (first[name], second[name]) for name in first}


def _diff(a: str, b: str) -> Iterator[tuple[str, str]]:
    if a == b:
        return
    lines = difflib.unified_diff(a.splitlines()[:_MAX_LINES], b.splitlines()[:_MAX_LINES], lineterm="", n=_CONTEXT)
    for number, line in enumerate(lines):
        if number >= 2:  # the first two name the files
            yield (" ", line) if line.startswith("@@") else (line[:1], line[1:])


def _pairs(a: Sequence[Call], b: Sequence[Call]) -> Iterator[CallPair]:
    """The calls in order; those with the same tool and arguments stand side by side."""
    first, second = ([(call.tool, short(call.arguments, _ARGUMENT_CHARS)) for call in calls] for calls in (a, b))
    for _, i, j, k, m in difflib.SequenceMatcher(None, first, second, autojunk=False).get_opcodes():
        same = first[i:j] == second[k:m]
        for x, y in zip(range(i, j), range(k, m), strict=True) if same else ():
            yield CallPair(*first[x], a[x].status, a[x].duration, b[y].status, b[y].duration)
        if not same:
            yield from (CallPair(*first[x], a[x].status, a[x].duration, None, None) for x in range(i, j))
            yield from (CallPair(*second[y], None, None, b[y].status, b[y].duration) for y in range(k, m))
