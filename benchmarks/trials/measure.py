"""What becomes of each task in each way of working: direct calls, and scripts in each language."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from moonbox import Sandbox
from moonbox.adapters.loop import Tokens
from moonbox.errors import UsageError
from trials.many import ERRANDS, office
from trials.recorded import scripts
from trials.tasks import TASKS, read_answer, same
from trials.world import Shop

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from moonbox.codemode.mode import Reply
    from trials.many import Errand
    from trials.providers import Model
    from trials.tasks import Task

__all__ = ["LANGUAGES", "WAYS", "Attempt", "Length", "Results", "errands", "lengths", "tasks"]

LANGUAGES = ("lua", "rhai")
WAYS = ("direct", *LANGUAGES)
RIGHT, SILENT, NOTED, NONE = "right", "wrong, silent", "wrong, with a note", "no answer"
_WHOLE_RESULTS = 200_000
"""Characters of a direct result: enough that none of the shop's is cut."""


@dataclass(frozen=True)
class Attempt:
    """One task, worked on once."""

    name: str
    verdict: str
    """RIGHT, SILENT, NOTED or NONE."""
    ran: bool = False
    """The first script, or the first direct call, ended without an error."""
    tokens: Tokens = field(default_factory=Tokens)
    turns: int = 0
    discovery: int = 0
    """Scripts before the first one that called a tool."""
    problem: str = ""
    """What the provider's client raised."""


@dataclass(frozen=True)
class Length:
    """A recorded script without the helpers and with them, in characters."""

    name: str
    plain: int
    helpers: int
    right: bool
    """Both gave the right answer."""

    @property
    def saved(self) -> float:
        return 1 - self.helpers / self.plain


@dataclass(frozen=True)
class Results:
    """A trial, by ways of working. Parts that were not measured are empty."""

    provider: str
    model: str
    tasks: dict[str, list[Attempt]]
    errands: dict[str, list[Attempt]]
    lengths: dict[str, list[Length]]


def tasks(model: Model, way: str, names: tuple[str, ...] = ()) -> list[Attempt]:
    """The tasks of the shop, in one way."""
    shop = Shop()
    with _agent(model, shop.tools(), way) as agent:
        return [_task(model, agent, task, shop) for task in TASKS if not names or task.name in names]


def errands(model: Model, language: str) -> list[Attempt]:
    """The errands of the office with 600 tools."""
    with _agent(model, office(), language) as agent:
        return [_attempt(model, agent, errand, lambda: True) for errand in ERRANDS]


def lengths(language: str) -> list[Length]:
    """The recorded scripts of each task, run without a model."""
    shop = Shop()
    plain, helpers = (scripts(kind, language) for kind in ("plain", "helpers"))
    with Sandbox(shop.tools(), language=language) as box:
        return [_length(box, shop, task, plain[task.name], helpers[task.name]) for task in TASKS]


def _length(box: Sandbox, shop: Shop, task: Task, plain: str, helpers: str) -> Length:
    right = []
    for source in (plain, helpers):
        shop.reset()
        right.append(same(box.run(source).unwrap(), task.expected()) and task.left_as_expected(shop))
    return Length(task.name, _without_indentation(plain), _without_indentation(helpers), all(right))


def _without_indentation(source: str) -> int:
    return len("\n".join(line.strip() for line in source.splitlines()))


@contextlib.contextmanager
def _agent(model: Model, tools: Any, way: str) -> Iterator[Any]:
    language = "lua" if way == "direct" else way
    settings: Any = {"mode": "never", "max_chars": _WHOLE_RESULTS} if way == "direct" else {}
    with Sandbox(tools, language=language) as box, model.adapter(box, **settings) as agent:
        yield agent


def _task(model: Model, agent: Any, task: Task, shop: Shop) -> Attempt:
    shop.reset()
    return _attempt(model, agent, task, lambda: task.left_as_expected(shop))


def _attempt(model: Model, agent: Any, task: Task | Errand, left_right: Callable[[], bool]) -> Attempt:
    try:
        asked = model.ask(agent, task.prompt)
    except UsageError:
        raise
    except Exception as problem:  # noqa: BLE001 - each client library has its own; one task must not end the trial
        return Attempt(task.name, NONE, problem=f"{type(problem).__name__}: {problem}")
    replies = asked.outcome.replies
    return Attempt(
        task.name,
        _verdict(asked.outcome.text, task.expected(), left_right(), replies),
        ran=bool(replies) and not replies[0].is_error,
        tokens=asked.tokens,
        turns=asked.turns,
        discovery=next((place for place, reply in enumerate(replies) if reply.run and reply.run.calls), len(replies)),
    )


def _verdict(text: str, expected: Any, left_right: bool, replies: tuple[Reply, ...]) -> str:
    try:
        found = read_answer(text)
    except ValueError:
        return NONE
    if left_right and same(found, expected):
        return RIGHT
    last = replies[-1] if replies else None
    noted = last is not None and (last.is_error or bool(last.run and last.run.notes))
    return NOTED if noted else SILENT
