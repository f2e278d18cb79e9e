"""What the model reads and writes, in tokens, with direct tool calls and in code mode; writes economy.md.

python benchmarks/economy.py [--tasks 200] [--kinds base,long_context] [--no-write]
"""

from __future__ import annotations

import argparse
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from tokenizer import NAME, token_counter  # noqa: E402 - found only from here on
from tokens import shop  # noqa: E402
from tokens.bfcl import Leaderboard, Task  # noqa: E402
from tokens.conversation import Auto, Failed, automatic, definition_texts, direct, scripted  # noqa: E402
from tokens.ledger import Bill  # noqa: E402
from tokens.report import MOST_FOR_AUTO, dearest_auto, report  # noqa: E402
from tokens.stories import STORIES, Story  # noqa: E402

from moonbox import CodeMode, Sandbox  # noqa: E402
from moonbox.tools.signature import render  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

KINDS = {"base": "The tasks as they are", "long_context": "The same with long results"}


@dataclass(frozen=True)
class Outcome:
    """What the ways of working cost on one task, or on several."""

    one: Bill = field(default_factory=Bill)
    """Direct, one call a request."""
    together: Bill = field(default_factory=Bill)
    """Direct, all calls of a turn in one request."""
    code: Bill = field(default_factory=Bill)
    """Code mode, one script a turn."""
    full: Bill = field(default_factory=Bill)
    """The same with full schemas in the catalog."""
    each: Bill = field(default_factory=Bill)
    """Code mode, one script for each call."""
    auto: Bill = field(default_factory=Bill)
    """`mode="auto"` at first."""
    learned: Bill = field(default_factory=Bill)
    """`mode="auto"` once it knows how large the results are."""
    tasks: int = 0
    auto_code: int = 0
    """In how many tasks auto showed the code tool alone at first, and in how many both."""
    auto_both: int = 0
    dearer: int = 0
    """In how many tasks a script a turn cost more than one call a request."""
    dearer_than_together: int = 0

    def __add__(self, other: Outcome) -> Outcome:
        return Outcome(
            self.one + other.one,
            self.together + other.together,
            self.code + other.code,
            self.full + other.full,
            self.each + other.each,
            self.auto + other.auto,
            self.learned + other.learned,
            self.tasks + other.tasks,
            self.auto_code + other.auto_code,
            self.auto_both + other.auto_both,
            self.dearer + other.dearer,
            self.dearer_than_together + other.dearer_than_together,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", type=int, default=200, help="at most so many of each kind")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--no-write", action="store_true")
    options = parser.parse_args()
    kinds_asked = [name for name in options.kinds.split(",") if name]
    if options.tasks < 1:
        raise SystemExit(f"--tasks must be at least 1, not {options.tasks}")
    if unknown := [name for name in kinds_asked if name not in KINDS]:
        raise SystemExit(f"--kinds: unknown kind {unknown[0]!r}; known kinds: {', '.join(KINDS)}")
    began = time.monotonic()
    count = token_counter()
    stories = [(story.title, told(story, count)) for story in STORIES]
    kinds, left_out = [], []
    for kind in kinds_asked:
        outcomes, contradictions = leaderboard(kind, options.tasks, count)
        kinds.append((KINDS[kind], outcomes))
        left_out += contradictions
    text = report(NAME, stories, kinds, left_out, shop_tokens(count))
    print(text)
    print(f"\n{time.monotonic() - began:.0f} s", file=sys.stderr)
    if (worst := dearest_auto(stories, kinds))[0] > MOST_FOR_AUTO:
        raise SystemExit(f"auto costs {worst[0]:.2f} times the better way in {worst[1]}")
    if not options.no_write:
        (HERE / "economy.md").write_text(text + "\n", encoding="utf-8")


def shop_tokens(count: Callable[[str], int]) -> tuple[int, int, int]:
    """What a shop's tools take: direct definitions, a description with every type in each signature, the real one."""
    tools = shop.tools()
    with Sandbox(tools, min_workers=0) as sandbox, CodeMode(sandbox) as mode:
        start = mode.description.removesuffix(mode.catalog.text)
        repeated = "\n".join([start, *(f"- {render(tool)}" for tool in tools)])
        described = count(mode.description)
    with Sandbox(tools, min_workers=0) as sandbox, CodeMode(sandbox, mode="never") as mode:
        return sum(count(text) for text in definition_texts(mode)), count(repeated), described


def told(story: Story, count: Callable[[str], int]) -> Outcome:
    """A story both ways; the script's answer must be the one that follows from the direct results."""
    turn, plain, expected = story.turn(), story.turn(script=False), story.known()

    def from_calls(_: int, values: list[Any]) -> None:
        _same(story, story.answer(values), expected)

    def from_script(_: int, values: list[Any]) -> None:
        _same(story, values, [expected])

    one, together = direct(story.tools, [plain], count, from_calls)
    code, full = scripted(story.tools, [turn], count, from_script)
    each, _ = scripted(story.tools, [plain], count, from_calls, a_script_for_each_call=True)
    first, learned = (automatic(story.tools, [turn], count, (one, code), learned=known) for known in (False, True))
    return outcome(one, together, code, full, each, first, learned)


def _same(story: Story, found: Any, expected: Any) -> None:
    if found != expected:
        raise Failed(f"{story.name}: {found} is not {expected}")


def leaderboard(kind: str, most: int, count: Callable[[str], int]) -> tuple[dict[str, Outcome], list[str]]:
    """Outcomes by category, and the tasks whose ground truth breaks its own schemas."""
    board = Leaderboard()
    found: dict[str, Outcome] = {}
    left_out = []
    tasks = _spread(board.tasks(kind), most)
    with ThreadPoolExecutor(4) as pool:  # most of the time goes into starting workers
        for task, result in zip(tasks, pool.map(lambda task: _measured(board, task, count), tasks), strict=True):
            if isinstance(result, str):
                left_out.append(result)
            else:
                found[task.category] = found.get(task.category, Outcome()) + result
    return found, left_out


def _measured(board: Leaderboard, task: Task, count: Callable[[str], int]) -> Outcome | str:
    """The outcome, or why there is none."""
    if (contradiction := board.contradiction(task)) is not None:
        return contradiction
    bills: dict[str, Any] = {}
    for way in ("direct", "code", "each"):
        instances = board.instances(task)
        tools, check = board.tools(task, instances), board.check(task, instances, way)
        if way == "direct":
            bills[way] = direct(tools, task.turns, count, check)
        elif way == "code" or any(len(turn.calls) > 1 for turn in task.turns):
            bills[way] = scripted(tools, task.turns, count, check, a_script_for_each_call=way == "each")
        else:
            bills[way] = bills["code"]  # never more than one call a turn: the same scripts
    one, together = bills["direct"]
    code, full = bills["code"]
    # Their tools have state, so that a conversation cannot be had again: what would be learned is not counted.
    auto = automatic(board.tools(task, board.instances(task)), task.turns, count, (one, code), learned=False)
    return outcome(one, together, code, full, bills["each"][0], auto, auto)


def outcome(one: Bill, together: Bill, code: Bill, full: Bill, each: Bill, auto: Auto, learned: Auto) -> Outcome:
    return Outcome(
        one,
        together,
        code,
        full,
        each,
        auto.bill,
        learned.bill,
        tasks=1,
        auto_code=int(auto.shown == "code"),
        auto_both=int(auto.shown == "both"),
        dearer=int(code.total > one.total),
        dearer_than_together=int(code.total > together.total),
    )


def _spread(tasks: Sequence[Task], most: int) -> list[Task]:
    """At most so many, taken evenly."""
    step = max(1, len(tasks) // most)
    return list(tasks[::step][:most])


if __name__ == "__main__":
    main()
