"""The page that a trial writes."""

from __future__ import annotations

from itertools import starmap
from typing import TYPE_CHECKING

from trials.measure import NONE, NOTED, RIGHT, SILENT
from trials.providers import RECORDED
from trials.tasks import TASKS

if TYPE_CHECKING:
    from trials.measure import Attempt, Length, Results

__all__ = ["page"]

THIRD = 1 / 3
_COLUMNS = (
    *("first tries that ran", "right answers", "silent wrong answers", "wrong, with a note", "no answer"),
    *("tokens read", "tokens written", "turns"),
)
_ABOUT_ERRANDS = (
    "The 600 tools are in 30 groups. The description of the code tool has only their names. Scripts of discovery are "
    "those before the first script that calls a tool."
)
_ABOUT_LENGTHS = (
    "Each task of the shop has a recorded script without the helpers and one with them. Both give the right answer. "
    "Lengths are in characters, without indentation."
)
_NAMES = {"direct": "direct calls", "lua": "Lua scripts", "rhai": "Rhai scripts"}


def page(results: Results) -> str:
    """The whole page, without the parts that were not measured."""
    parts = [_head(results.provider, results.model), _summary(results.tasks), _each_task(results.tasks)]
    parts += [_errands(results.errands)] if results.errands else []
    parts += [_lengths(results.lengths)] if results.lengths else []
    parts += _problems(results)
    return "\n\n".join(parts) + "\n"


def _head(provider: str, model: str) -> str:
    if model != RECORDED:
        return (
            f"# Trial: {model}\n\nThe model {model}, through the adapter for `{provider}`. Tokens are those that the "
            "provider counted, over all requests. One attempt a task: repeat the trial before you compare two models."
        )
    return (
        "# Trial: the recorded model\n\nThe model is a recording: it says what is written in `benchmarks/trials/`, "
        f"through the wire format of `{provider}`. The figures show what the ways of working cost. They say nothing "
        "about how well a real model works: the recorded one never miscalculates, and two of its first scripts in each "
        "language have a mistake on purpose. Tokens are estimated at four bytes each, over all requests."
    )


def _summary(tasks: dict[str, list[Attempt]]) -> str:
    lines = [
        f"## The shop: {_number_of(tasks)} tasks, 20 tools",
        "",
        f"| {_row(*_COLUMNS)}",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for way, attempts in tasks.items():
        verdicts = [attempt.verdict for attempt in attempts]
        counts = [verdicts.count(verdict) for verdict in (RIGHT, SILENT, NOTED, NONE)]
        read, written = (sum(getattr(each.tokens, side) for each in attempts) for side in ("input", "output"))
        cells = [sum(each.ran for each in attempts), *counts, _thousands(read), _thousands(written)]
        lines.append(_row(_NAMES[way], *cells, sum(each.turns for each in attempts)))
    return "\n".join(lines)


def _each_task(tasks: dict[str, list[Attempt]]) -> str:
    heads = [f"{_NAMES[way]}: tokens | turns | answer" for way in tasks]
    lines = [f"| task | {' | '.join(heads)} |", "|---|" + "---:|---:|---|" * len(tasks)]
    questions = {task.name: task.question for task in TASKS}
    for attempts in zip(*tasks.values(), strict=True):
        cells = [cell for each in attempts for cell in (_thousands(each.tokens.total), each.turns, each.verdict)]
        lines.append(_row(questions[attempts[0].name], *cells))
    return "\n".join(lines)


def _errands(errands: dict[str, list[Attempt]]) -> str:
    lines = [
        "## The office: one tool among 600",
        "",
        _ABOUT_ERRANDS,
        "",
        "| | errands | right answers | most scripts of discovery | tokens an errand | turns an errand |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for way, attempts in errands.items():
        count = len(attempts)
        right = sum(each.verdict == RIGHT for each in attempts)
        tokens = sum(each.tokens.total for each in attempts) / count
        turns = sum(each.turns for each in attempts) / count
        most = max(each.discovery for each in attempts)
        lines.append(_row(_NAMES[way], count, right, most, _thousands(tokens), f"{turns:.1f}"))
    return "\n".join(lines)


def _lengths(lengths: dict[str, list[Length]]) -> str:
    lines = [
        "## The helpers: `pages` and lists",
        "",
        _ABOUT_LENGTHS,
        "",
        "| task | " + " | ".join(f"{_NAMES[way]}: without | with | shorter by" for way in lengths) + " |",
        "|---|" + "---:|---:|---:|" * len(lengths),
    ]
    for found in zip(*lengths.values(), strict=True):
        cells = [cell for each in found for cell in (each.plain, each.helpers, f"{each.saved:.0%}")]
        lines.append(_row(f"`{found[0].name}`", *cells))
    sums = [(sum(each.plain for each in found), sum(each.helpers for each in found)) for found in lengths.values()]
    lines.append(_row("all", *(cell for a, b in sums for cell in (f"{a:,}", f"{b:,}", f"{1 - b / a:.0%}"))))
    lines += ["", f"Shorter by a third or more: {' and '.join(starmap(_thirds, lengths.items()))}."]
    return "\n".join(lines)


def _problems(results: Results) -> list[str]:
    lines = [
        f"- {attempt.name}, {_NAMES[way]}: {attempt.problem}"
        for found in (results.tasks, results.errands)
        for way, attempts in found.items()
        for attempt in attempts
        if attempt.problem
    ]
    return ["## Errors of the provider\n\n" + "\n".join(lines)] if lines else []


def _thirds(way: str, found: list[Length]) -> str:
    return f"{sum(each.saved >= THIRD for each in found)} of {len(found)} {_NAMES[way]}"


def _number_of(tasks: dict[str, list[Attempt]]) -> int:
    return max(map(len, tasks.values()))


def _thousands(tokens: float) -> str:
    return f"{tokens / 1000:,.1f}k"


def _row(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"
