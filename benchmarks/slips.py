"""What becomes of scripts as models write them: a right answer, a clear error before or after a call, a wrong answer.

    python benchmarks/slips.py             the table
    python benchmarks/slips.py --list      and every script that does not give the right answer
    python benchmarks/slips.py --write     and put the table into docs/benchmarks/slips.md

The scripts are in benchmarks/slips/*.lua and *.rhai; each begins with a line `-- slip: name, task` (in Rhai
`// slip: …`). The worlds and tasks are in benchmarks/slip_worlds.py. Each script runs in a world of its own. The tools
of the office have been called once before, so that the shapes of their results are known, as in a server that has run
for a while.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moonbox import Sandbox

sys.path.insert(0, str(Path(__file__).resolve().parent))

from slip_worlds import TASKS, World

if TYPE_CHECKING:
    from moonbox import Run
    from moonbox.schema.learned import LearnedShapes

FOLDER = Path(__file__).parent / "slips"
PAGE = Path(__file__).parent.parent / "docs" / "benchmarks" / "slips.md"
OUTCOMES = ("right", "error before any call", "error after a call", "wrong, with a note", "wrong")
_HEAD = re.compile(r"^(?:--|//) slip: *([\w-]+), *(\w+)(?:, *(\w+))?\n", re.MULTILINE)


@dataclass(frozen=True)
class Slip:
    """One script."""

    name: str
    task: str
    language: str
    group: str
    source: str
    allowed: str = ""
    """`wrong` for a slip that nothing can tell from what was meant."""


def read_slips(language: str) -> list[Slip]:
    slips = []
    suffix = {"lua": "*.lua", "rhai": "*.rhai"}[language]
    for path in sorted(FOLDER.glob(suffix)):
        heads = list(_HEAD.finditer(text := path.read_text(encoding="utf-8")))
        for head, following in zip(heads, [*heads[1:], None], strict=True):
            end = following.start() if following else len(text)
            source = text[head.end() : end].strip() + "\n"
            slips.append(Slip(head[1], head[2], language, path.stem, source, head[3] or ""))
    return slips


class Bench:
    """Runs slips, each in a fresh world."""

    def __init__(self, *, check: bool = True) -> None:
        self._check = check

    def outcome(self, slip: Slip) -> tuple[str, Run]:
        task = TASKS[slip.task]
        world = World(task.world)
        with Sandbox(world.tools, language=slip.language, isolation="inline", min_workers=0, check=self._check) as box:
            _teach(box.toolbox.learned, task.world)
            run = box.run(slip.source)
        if run.error is not None:
            return ("error after a call" if run.calls else "error before any call"), run
        if _same(run.value, task.answer):
            return "right", run
        return ("wrong, with a note" if run.notes else "wrong"), run


def _teach(learned: LearnedShapes, world: str) -> None:
    """Let it know a world whose tools have been called before."""
    tools = {tool.name: tool for tool in World(world).tools}
    samples: dict[str, dict[str, Any]] = {
        "list_employees": {},
        "get_expenses": {"employee_id": 1},
        "weather": {"city": "Rome"},
        "read_file": {"path": "x"},
        "create_ticket": {"title": "x"},
        "sensor": {},
    }
    for name, arguments in samples.items():
        if name in tools:
            learned.learn(name, tools[name].convert_result(tools[name].call(arguments)))


def _same(value: Any, answer: Any) -> bool:
    if isinstance(answer, float) and isinstance(value, int | float) and not isinstance(value, bool):
        return abs(value - answer) < 1e-9
    return bool(value == answer) and isinstance(value, bool) == isinstance(answer, bool)


def table(results: dict[str, Counter[str]]) -> str:
    lines = ["| | scripts | " + " | ".join(OUTCOMES) + " |", "|---|---|" + "---|" * len(OUTCOMES)]
    for name, counts in results.items():
        cells = [f"{counts[outcome]}" for outcome in OUTCOMES]
        lines.append(f"| {name} | {sum(counts.values())} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--only", default="")
    options = parser.parse_args(arguments)
    results: dict[str, Counter[str]] = {}
    failed = 0
    for language, title in (("lua", "Lua"), ("rhai", "Rhai")):
        for check, label in ((True, title), (False, f"{title}, unchecked")):
            bench, counts = Bench(check=check), Counter[str]()
            for slip in read_slips(language):
                if options.only and options.only not in slip.name:
                    continue
                outcome, run = bench.outcome(slip)
                counts[outcome] += 1
                surprising = outcome == "wrong" and slip.allowed != "wrong"
                failed += surprising and check
                if check and ((options.list and outcome != "right") or surprising):
                    about = run.error or [str(note) for note in run.notes] or run.value
                    print(f"{outcome}: {slip.group}/{slip.name} ({language}): {about}", file=sys.stderr)
            results[label] = counts
    print(table(results))
    if options.write:
        write_page(table(results))
    return 1 if failed else 0


def write_page(text: str) -> None:
    page = PAGE.read_text(encoding="utf-8")
    begin, end = "<!-- table -->\n", "<!-- end of table -->"
    before, _, rest = page.partition(begin)
    _, _, after = rest.partition(end)
    PAGE.write_text(f"{before}{begin}{text}\n{end}{after}", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
