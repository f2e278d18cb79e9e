"""docs/javascript.md: how many cases pass in each host, what differs, and why."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.conformance.run import Results

PAGE = Path(__file__).parents[2] / "docs" / "javascript.md"
BEGIN, END = "<!-- table: written by tests/conformance/run.py --write -->\n", "<!-- end of the table -->\n"
TITLES = {
    "process": "Python, processes",
    "inline": "Python, inline",
    "node": "Node",
    "chromium": "Chromium",
    "deno": "Deno",
    "bun": "Bun",
}
GROUPS = {
    "lua": "Lua: language, library, tools, limits",
    "lua errors": "Lua: errors of models",
    "attacks": "Attacks",
    "nulls": "Nulls, in both languages",
    "rhai": "Rhai: language, library, tools, limits",
}
REASONS = {
    "attacks/bomb__keys_that_collide": "keys chosen to collide in Python's dict; JavaScript's Map is not slowed",
}
UNKNOWN = "not explained yet"


def write_table(results: Results) -> None:
    """Replace the table in the page."""
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    PAGE.write_text(before + BEGIN + "\n" + render(results) + "\n" + END + after, encoding="utf-8")


def render(results: Results) -> str:
    hosts = [name for name in TITLES if name in results]
    lines = [
        "| cases | " + " | ".join(TITLES[name] for name in hosts) + " |",
        "|---|" + "---|" * len(hosts),
    ]
    for group, title in GROUPS.items():
        cells = [_count(results[name].get(group, {})) for name in hosts]
        lines.append(f"| {title} | " + " | ".join(cells) + " |")
    totals = [
        _count({f"{group}/{name}": found for group in GROUPS for name, found in results[host].get(group, {}).items()})
        for host in hosts
    ]
    lines.append("| **all** | " + " | ".join(totals) + " |")
    differing: dict[str, list[str]] = {}
    for host in hosts:
        for group, cases in results[host].items():
            for name, found in cases.items():
                if found:
                    differing.setdefault(f"{group}/{name}", []).append(TITLES[host])
    lines += ["", "| case that differs | where | why |", "|---|---|---|"]
    lines += [
        f"| `{name}` | {', '.join(where)} | {REASONS.get(name, UNKNOWN)} |" for name, where in sorted(differing.items())
    ]
    return "\n".join(lines) + "\n"


def _count(cases: dict[str, list[str]]) -> str:
    return f"{sum(not found for found in cases.values())} of {len(cases)}" if cases else "–"
