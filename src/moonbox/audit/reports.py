"""Reports on runs: timeline, tracebacks of tools, what a run spared the model's context, and the comparison of two."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from moonbox.compact import short
from moonbox.values import to_jsonable
from moonbox.wording import counted, seconds, visible

if TYPE_CHECKING:
    from rich.text import Text

    from moonbox.audit.records import Call, Run

_STATUSES = {
    "ok": ("✓", "green"),
    "error": ("✗", "red"),
    "denied": ("⊘", "yellow"),
    "timeout": ("!", "red"),
    "cancelled": ("∅", "yellow"),
    "in_flight": ("…", "cyan"),
}
"""The mark and the colour of each status of a call."""
_MAX_LINES = 2_000
_MAX_CALLS = 500
_CONTEXT = 3
_ARGUMENT_CHARS = 200


def timeline_text(run: Run, width: int = 100, *, max_rows: int = 100) -> list[Text]:
    """The timeline for rich: a scale, a row for each of the first calls, and how many calls are not shown."""
    from rich.text import Text

    calls = run.calls[:max_rows]
    if not calls:
        return []
    names, statuses = [visible(call.tool, keep="") for call in calls], [_status(call, run) for call in calls]
    label_width = min(max(map(len, names)), max(8, width // 4))
    number_width = len(str(run.calls[-1].index))
    cells = max(10, width - number_width - label_width - 3 - _ROOM_FOR_TIME - max(map(len, statuses)))
    start = min([call.started for call in run.calls] + ([run.started] if run.started else []))
    ends = [call.started + call.queued + call.duration for call in run.calls]
    end = max(*ends, run.started + run.usage.wall if run.started else 0.0, start)
    scale = f"{'0':<{cells - len(seconds(end - start))}}{seconds(end - start)}"
    lines = [Text(f"{'':{number_width}} {'':{label_width}} {scale}", style="dim")]
    for call, name, status in zip(calls, names, statuses, strict=True):
        style = _STATUSES.get(call.status, ("?", "default"))[1]
        label = name if len(name) <= label_width else name[: label_width - 1] + "…"
        line = Text(f"{call.index:>{number_width}} ", style="dim")
        line.append(f"{label:<{label_width}} ", style="default")
        line.append(_bar(call, start, (end - start) / cells or 1.0, cells), style=style)
        line.append(f" {seconds(call.duration):>{_ROOM_FOR_TIME - 1}} ", style="default")
        line.append(status, style=style)
        lines.append(line)
    if hidden := len(run.calls) - len(calls):
        lines.append(Text(f"{'':{number_width}} … {counted(hidden, 'more call')}", style="dim"))
    return lines


_ROOM_FOR_TIME = 9


def _bar(call: Call, start: float, per_cell: float, cells: int) -> str:
    """Spaces, the wait for a slot, a person or the next try as ░, the time inside the tool as █."""

    def cell(moment: float) -> int:
        return min(cells, max(0, round((moment - start) / per_cell)))

    begun = min(cell(call.started), cells - 1)
    entered = min(max(cell(call.started + call.queued), begun), cells - 1)
    left = max(cell(call.started + call.queued + call.duration), entered + 1)  # never invisible
    if call.status == "in_flight":
        left = cells
    row = [*" " * begun, *"░" * (entered - begun), *"█" * (left - entered), *" " * (cells - left)]
    for before, after in pairwise(call.tries):
        pause = slice(max(entered, cell(before.started + before.duration)) + 1, min(left, cell(after.started)))
        row[pause] = "░" * len(row[pause])
    return "".join(row)


def _status(call: Call, run: Run) -> str:
    """The mark of a call's status, for a call that is not ok the status in words, and how often it was tried."""
    mark = _STATUSES.get(call.status, ("?", "default"))[0]
    tries = f" {counted(len(call.tries), 'try', 'tries')}" if len(call.tries) > 1 else ""
    if call.ok:
        return mark + tries
    words = call.error.code if call.error and call.status == "error" else call.status
    if call.status == "in_flight":
        words = "running" if run.running else "in doubt"
    return f"{mark} {visible(words, keep='')[:30]}{tries and ',' + tries}"


def tracebacks(run: Run) -> list[tuple[Call, str]]:
    """The calls whose tools raised, each with the traceback of the tool's own code: for the developer alone."""
    failed = [(call, call.error.detail) for call in run.calls if call.error is not None]
    return [(call, text.rstrip()) for call, text in failed if text]


def economy_of(run: Run, answer: str, count: Callable[[str], int]) -> dict[str, int]:
    """The economy of a run whose model was shown this answer: tokens, as a counter estimates them.

    direct   every call's name, arguments and result, as if the model had made the calls one by one
    script   the script and the answer
    spared   what the script spared; negative where direct calls would have been cheaper
    """
    direct, tokens = sum(count(_as_direct_call(call)) for call in run.calls), count(answer)
    script = count(run.source) + tokens
    return {"calls": len(run.calls), "direct": direct, "script": script, "answer": tokens, "spared": direct - script}


def _as_direct_call(call: Call) -> str:
    result = call.result if call.error is None else f"{call.error.code}: {call.error.message}"
    message = [call.tool, to_jsonable(call.arguments), to_jsonable(result)]
    return json.dumps(message, ensure_ascii=False, separators=(",", ":"))


def compare(a: Run, b: Run) -> dict[str, Any]:
    """What differs between two runs, the earlier first, as JSON.

    Lines of the scripts have "+", "-" or " " in front; `hidden_calls` are left out here because there are too many.
    """
    return {
        "figures": _figures(a, b),
        "diff": list(_diff(a.source, b.source)),
        "calls": list(_pairs(a.calls[:_MAX_CALLS], b.calls[:_MAX_CALLS])),
        "hidden_calls": max(0, len(a.calls) - _MAX_CALLS) + max(0, len(b.calls) - _MAX_CALLS),
        "same_values": a.values == b.values,
        "same_output": a.output == b.output,
    }


def _figures(a: Run, b: Run) -> dict[str, tuple[float, float]]:
    def of(run: Run) -> dict[str, float]:
        used = {name: getattr(run.usage, name) or 0 for name in ("wall", "cpu", "operations", "peak_memory")}
        used |= {"calls": len(run.calls), "failed_calls": sum(not call.ok for call in run.calls)}
        return used | {"bytes_in": run.usage.bytes_in, "bytes_out": run.usage.bytes_out, "output": len(run.output)}

    second = of(b)
    return {name: (value, second[name]) for name, value in of(a).items()}


def _diff(a: str, b: str) -> Iterator[tuple[str, str]]:
    if a == b:
        return
    lines = difflib.unified_diff(a.splitlines()[:_MAX_LINES], b.splitlines()[:_MAX_LINES], lineterm="", n=_CONTEXT)
    for number, line in enumerate(lines):
        if number >= 2:  # the first two name the files
            yield (" ", line) if line.startswith("@@") else (line[:1], line[1:])


def _pairs(a: Sequence[Call], b: Sequence[Call]) -> Iterator[dict[str, Any]]:
    """The calls in order; those with the same tool and arguments stand side by side."""
    first, second = ([_identity(call) for call in calls] for calls in (a, b))
    for kind, i, j, k, m in difflib.SequenceMatcher(None, first, second, autojunk=False).get_opcodes():
        if kind == "equal":
            yield from (_pair(one, other, one) for one, other in zip(a[i:j], b[k:m], strict=True))
        else:
            yield from (_pair(call, None, call) for call in a[i:j])
            yield from (_pair(None, call, call) for call in b[k:m])


def _pair(a: Call | None, b: Call | None, either: Call) -> dict[str, Any]:
    """A call that both runs made, or that only one did: then the other's number, status and duration are None."""
    tool, arguments = _identity(either)
    pair: dict[str, Any] = {"tool": tool, "arguments": arguments}
    for side, call in (("a", a), ("b", b)):
        pair |= {side: call and call.index, f"{side}_status": call and call.status}
        pair[f"{side}_duration"] = call and call.duration
    return {**pair, "same": a is not None and b is not None and _answer(a) == _answer(b)}


def _identity(call: Call) -> tuple[str, str]:
    return call.tool, short(call.arguments, _ARGUMENT_CHARS)


def _answer(call: Call) -> tuple[Any, ...]:
    return call.status, call.packed, call.error and (call.error.code, call.error.message)
