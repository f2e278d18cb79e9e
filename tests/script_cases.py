"""Script cases: a script in a file, with what must come of it in comments at its head.

A case is one or more steps, run one after another in one Repl. A line `-- next run` begins another step. Each step
starts with comments of the form `-- key: text`; the whole step, its comments included, is the script, so that lines are
counted from the step's first.

    -- value: 3                    a returned value as JSON (bytes: {"$bytes": "base64"}), one line for each
    -- prints: "a\\n"               what is printed, as a JSON string
    -- error: limit memory         the error's kind, and the limit's name where it is one
    -- line: 4                     the error's line
    -- message: text               the error's message, word for word (as a JSON string where it has several lines)
    -- message has: text           a part of the error's message
    -- hint: text                  the error's hint, word for word
    -- calls: add fail             the tools that were called, in order
    -- state: lost                 the worker does not survive
    -- state: either               it may, which chance decides

What is not named must not happen: no value, nothing printed, no error, no call, no loss. For the whole file, on top:

    -- attack: text                what an attack tries
    -- features: coroutines metatables
    -- limits: {"max_string": 1000}
    -- isolation: process          when only that isolation can be asked for it
    -- check: off                  run it without looking at it first

In a script whose comments begin with `#`, so do these.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from moonbox import Limits, Sandbox, Tool, Toolbox, ToolError, tool
from moonbox.languages.registry import LANGUAGES
from moonbox.values import to_jsonable

if TYPE_CHECKING:
    from pathlib import Path

    from moonbox import Repl, Run
    from moonbox.errors import ScriptError

ISOLATIONS = ("process", "inline")
_HEAD = re.compile(r"(?:--|#) ([a-z ]+): ?(.*)")
_NEXT = re.compile(r"^(?:--|#) next run\n", re.MULTILINE)
_LANGUAGES = {each.suffix: each.name for each in LANGUAGES.values()}
_WHOLE_FILE = {"attack", "features", "limits", "isolation", "check"}
_STEP = {"value", "prints", "error", "line", "message", "message has", "hint", "calls", "state"}


@dataclass(frozen=True)
class Step:
    """One script and what must come of it."""

    source: str
    expected: dict[str, list[str]]

    def check(self, run: Run) -> None:
        assert self.seen(run) == self.wanted()
        if run.error is not None:
            assert self.error_differences(run.error) == []

    def seen(self, run: Run) -> dict[str, Any]:
        """What came of it, in the form of `wanted`."""
        seen = _seen(run)
        return {**seen, "state_lost": False} if self._text("state") == "either" else seen

    def wanted(self) -> dict[str, Any]:
        return {
            "error": self._text("error") or None,
            "values": [_canonical(json.loads(text)) for text in self.expected.get("value", ())],
            "output": "".join(json.loads(text) for text in self.expected.get("prints", ())),
            "calls": self._text("calls").split(),
            "state_lost": self._text("state") == "lost",
        }

    def error_differences(self, error: ScriptError) -> list[str]:
        """Where the error is not what the head says."""
        pairs: list[tuple[str, object, object]] = []
        if "line" in self.expected:
            pairs.append(("line", error.line, int(self._text("line"))))
        if "message" in self.expected:
            pairs.append(("message", error.message, _quoted_or_plain(self._text("message"))))
        if "hint" in self.expected:
            pairs.append(("hint", error.hint, _quoted_or_plain(self._text("hint"))))
        parts = [_quoted_or_plain(part) for part in self.expected.get("message has", ())]
        missing = [f"message: {error.message!r} has no {part!r}" for part in parts if part not in error.message]
        return [f"{key}: {seen!r}, not {wanted!r}" for key, seen, wanted in pairs if seen != wanted] + missing

    def _text(self, key: str) -> str:
        return (self.expected.get(key) or [""])[0]


@dataclass(frozen=True)
class Case:
    """What one file holds."""

    steps: list[Step]
    limits: Limits = field(default_factory=Limits)
    features: frozenset[str] = frozenset()
    isolations: tuple[str, ...] = ISOLATIONS
    attack: str = ""
    check: bool = True
    language: str = "lua"

    def play(self, repl: Repl) -> list[Run]:
        runs = []
        for step in self.steps:
            runs.append(repl.run(step.source))
            step.check(runs[-1])
        return runs


def read_case(path: Path) -> Case:
    parts = _NEXT.split(path.read_bytes().decode())
    whole: dict[str, str] = {}
    steps: list[Step] = []
    for part in parts:
        expected: dict[str, list[str]] = {}
        for key, text in _head(part):
            if key in _WHOLE_FILE and not steps:
                whole[key] = text
            else:
                assert key in _STEP, f"{path.name}: unknown key {key!r}"
                expected.setdefault(key, []).append(text)
        steps.append(Step(part, expected))
    return Case(
        steps=steps,
        limits=Limits(**{"timeout": 60, **json.loads(whole.get("limits", "{}"))}),
        features=frozenset(whole.get("features", "").split()),
        isolations=tuple(whole.get("isolation", " ".join(ISOLATIONS)).split()),
        attack=whole.get("attack", ""),
        check=whole.get("check") != "off" and path.parent.name != "errors",  # those are about errors of the run
        language=_LANGUAGES[path.suffix],
    )


def read_cases(folder: Path, suffix: str = ".lua") -> list[tuple[Path, str]]:
    """Every case of a folder with each isolation that it can be run in."""
    paths = sorted(folder.glob(f"*__*{suffix}"))
    return [(path, isolation) for path in paths for isolation in read_case(path).isolations]


class Boxes:
    """Sandboxes with the tools that script cases call; one for each isolation and set of features."""

    def __init__(self) -> None:
        self._boxes: dict[tuple[str, str, frozenset[str], bool], Sandbox] = {}

    def repl(self, case: Case, isolation: str) -> Repl:
        key = case.language, isolation, case.features, case.check
        if key not in self._boxes:
            self._boxes[key] = Sandbox(
                case_tools(),
                isolation=isolation,  # type: ignore[arg-type]
                language=case.language,
                lua_features=case.features,
                check=case.check,
            )
        return self._boxes[key].repl(limits=case.limits)

    def close(self) -> None:
        for box in self._boxes.values():
            box.close()


def case_tools() -> Toolbox:
    def anything(name: str, call: Any) -> Tool:
        return Tool.from_schema(name=name, description="", parameters={"type": "object"}, call=call)

    @tool
    def add(a: int, b: int = 1) -> int:
        """Add two numbers."""
        return a + b

    @tool
    def fail(message: str = "it failed", code: str = "broken", retryable: bool = False) -> None:
        """Fail with that message."""
        raise ToolError(message, code=code, retryable=retryable, data={"seen": [1, 2]})

    @tool
    def rows(count: int) -> list[dict[str, Any]]:
        """So many rows."""
        return [{"id": n, "name": f"row {n}", "even": n % 2 == 0} for n in range(1, count + 1)]

    @tool
    def text(size: int) -> str:
        """A text of that size."""
        return "x" * size

    box = Toolbox.of([add, fail, rows, text])
    box.add(anything("echo", lambda arguments: arguments.get("value")))
    return box


def _head(part: str) -> list[tuple[str, str]]:
    found = []
    for line in part.splitlines():
        match = _HEAD.fullmatch(line)
        if not match:
            break
        found.append((match[1], match[2]))
    return found


def _seen(run: Run) -> dict[str, Any]:
    error = None
    if run.error is not None:
        error = f"{run.error.kind} {run.error.limit}" if run.error.limit else run.error.kind
        assert run.error.message, "an error without a message helps nobody"
    return {
        "error": error,
        "values": [_canonical(to_jsonable(value)) for value in run.values],
        "output": run.output,
        "calls": [call.tool for call in run.calls],
        "state_lost": run.state_lost,
    }


def _canonical(value: Any) -> str:
    """Text that tells 1 from 1.0 and from true."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def _quoted_or_plain(text: str) -> Any:
    return json.loads(text) if text.startswith('"') else text
