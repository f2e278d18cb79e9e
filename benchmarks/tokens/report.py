"""The report of the token economy, as Markdown."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tokens.ledger import Bill

_METHOD = Path(__file__).with_name("method.md")
_HEAD = (
    "| | definitions | context at the end | written | all requests: direct one by one | direct at once "
    "| **code, a script a turn** | the same, full schemas | code, a script a call | auto | auto, results known |"
)
MOST_FOR_AUTO = 2.5
"""Times what the better of direct calls and code mode costs: no row may be above."""


def report(
    tokenizer: str,
    stories: Sequence[tuple[str, Any]],
    kinds: Sequence[tuple[str, Mapping[str, Any]]],
    left_out: Sequence[str],
    shop: tuple[int, int, int],
) -> str:
    lines = [
        _METHOD.read_text(encoding="utf-8").replace("{tokenizer}", tokenizer),
        "## Stories with large intermediate results",
        "",
    ]
    lines += _table([(title, outcome) for title, outcome in stories], total=None)
    lines += ["", "## Types that tools share", "", _shop(*shop)]
    for title, outcomes in kinds:
        rows = sorted(outcomes.items())
        whole = sum((outcome for _, outcome in rows[1:]), rows[0][1])
        lines += ["", f"## {title}", ""]
        lines += _table([(f"{name} ({outcome.tasks})", outcome) for name, outcome in rows], whole)
        lines += ["", _verdict(whole)]
    lines += ["", "## Where code mode costs more", "", *_losses(stories, kinds)]
    lines += ["", "## What `auto` costs against the better way", "", *_judged(stories, kinds)]
    if left_out:
        lines += ["", "Left out, because the ground truth breaks the task's own schema: " + "; ".join(left_out) + "."]
    return "\n".join(lines)


def _shop(direct: int, repeated: int, described: int) -> str:
    return (
        "A shop has 20 tools with nested types for orders, items, users, products and payments. Their direct "
        f"definitions take {direct:,} tokens, without what they return. The code tool's description, with every field "
        f"of every type, would take {repeated:,} tokens with the types in each signature; with each type once, it "
        f"takes {described:,} ({percent(described / repeated)})."
    )


def _table(rows: Sequence[tuple[str, Any]], total: Any) -> list[str]:
    lines = [_HEAD, "|---|" + "---:|" * 10]
    lines += [_row(title, outcome) for title, outcome in rows]
    if total is not None:
        lines.append(_row(f"**all {total.tasks}**", total))
    return lines


def _row(title: str, outcome: Any) -> str:
    one, code = outcome.one, outcome.code
    cells = [
        f"{one.definitions:,} → {code.definitions:,}",
        f"{one.context:,} → {code.context:,}",
        f"{one.written:,} → {code.written:,}",
        f"{one.total:,}",
        _against(outcome.together, one),
        f"**{_against(code, one)}**",
        _against(outcome.full, one),
        _against(outcome.each, one),
        _against(outcome.auto, one),
        _against(outcome.learned, one),
    ]
    return f"| {title} | " + " | ".join(cells) + " |"


def _against(bill: Bill, one: Bill) -> str:
    return f"{bill.total:,} ({percent(bill.total / one.total)})"


def percent(ratio: float) -> str:
    """Two significant figures, so that neither 0.4 % nor 99.6 % is rounded to a lie."""
    value = ratio * 100
    return f"{value:.0f} %" if value >= 10 else f"{value:.2g} %"


def _verdict(whole: Any) -> str:
    return (
        f"A script a turn costs more than direct calls one by one in {whole.dearer} of {whole.tasks} tasks, "
        f"and more than direct calls all at once in {whole.dearer_than_together}. "
        f"`auto` showed the code tool alone in {whole.auto_code}, and both in {whole.auto_both}. "
        f"Requests: {whole.one.requests:,} one by one, {whole.together.requests:,} at once, "
        f"{whole.code.requests:,} with a script a turn."
    )


def _losses(stories: Sequence[tuple[str, Any]], kinds: Sequence[tuple[str, Mapping[str, Any]]]) -> list[str]:
    rows = [*stories, *((f"{title}, {name}", item) for title, found in kinds for name, item in found.items())]
    lines = []
    for title, outcome in rows:
        one, together, code, each = outcome.one, outcome.together, outcome.code, outcome.each
        said = [
            f"{what} {percent(mine / other - 1)} more"
            for what, mine, other in (
                ("a script a turn against calls one by one:", code.total, one.total),
                ("a script a turn against calls all at once:", code.total, together.total),
                ("a script a call against calls one by one:", each.total, one.total),
                ("context at the end:", code.context, one.context),
            )
            if mine > other
        ]
        if said:
            chosen = f"`auto` showed the code tool in {outcome.auto_code + outcome.auto_both} of {outcome.tasks}"
            lines.append(
                f"- {title}: {'; '.join(said)}. {chosen}, at {percent(outcome.auto.total / one.total)} of direct."
            )
    full = sum(outcome.full.total > outcome.one.total for _, outcome in rows)
    fuller = sum(outcome.full.total > outcome.together.total for _, outcome in rows)
    lines.append(
        "- With full schemas in the catalog, a script a turn costs more than calls one by one "
        f"in {full} of {len(rows)} rows, and more than calls all at once in {fuller}."
    )
    written = [(outcome.one.written, outcome.code.written) for _, outcome in rows]
    more = sum(code > one for one, code in written)
    lines.append(f"- In {more} of {len(rows)} rows the model writes more tokens in code mode than with direct calls.")
    return lines


def dearest_auto(
    stories: Sequence[tuple[str, Any]], kinds: Sequence[tuple[str, Mapping[str, Any]]]
) -> tuple[float, str]:
    """The row in which auto costs the most against the better of direct calls and code mode, and how many times."""
    rows = [*stories, *((f"{title}, {name}", item) for title, found in kinds for name, item in found.items())]
    return max((max(_times(outcome)), title) for title, outcome in rows)


def _judged(stories: Sequence[tuple[str, Any]], kinds: Sequence[tuple[str, Mapping[str, Any]]]) -> list[str]:
    """Rows in which auto costs more than the better of direct calls and code mode."""
    rows = [*stories, *((f"{title}, {name}", item) for title, found in kinds for name, item in found.items())]
    lines = [
        f"- {title}: {outcome.auto.total:,} tokens at first and {outcome.learned.total:,} once results are known, "
        f"where the better way takes {_best(outcome):,}: {_times(outcome)[0]:.2f} and {_times(outcome)[1]:.2f} times."
        for title, outcome in rows
        if max(_times(outcome)) > 1
    ]
    worst, title = dearest_auto(stories, kinds)
    lines += [""] if lines else []
    return [*lines, f"At most {worst:.2f} times, in {title}; {MOST_FOR_AUTO} are allowed."]


def _best(outcome: Any) -> int:
    return int(min(outcome.one.total, outcome.together.total, outcome.code.total))


def _times(outcome: Any) -> tuple[float, float]:
    best = _best(outcome)
    return outcome.auto.total / best, outcome.learned.total / best
