"""Quick calls: of tools that are no more than a function of plain values, by the shortest way.

What decides whether a tool is one is looked at once, not for every call: nobody is asked about it, nothing is waited
for, nothing is handed in, and its parameters are integers, text and truth values, which a script's values are already.
A call with other arguments, or of a Repl that holds media, goes the way of all calls, as does one that is written down
before it is made.
"""

from __future__ import annotations

from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any

from moonbox.errors import ToolError
from moonbox.frozen import NATIVE
from moonbox.sandbox.record import CLOCK, cancelled_itself, failure
from moonbox.tools.results import collect_rows, to_tool_error
from moonbox.values import ORDINARY

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator
    from typing import TypeVar

    from moonbox.media import MediaStore
    from moonbox.sandbox.calls import Executor
    from moonbox.sandbox.record import CallEntry, CallResult, RunClock
    from moonbox.sandbox.setup import Setup
    from moonbox.tools.tool import Tool
    from moonbox.tools.toolbox import Toolbox

    T = TypeVar("T")

__all__ = ["QuickCalls", "run_to_end"]

_lower: Callable[..., Any] | None = getattr(NATIVE, "lowered", None)


class QuickTool:
    """A tool that can be called quickly."""

    __slots__ = ("bind", "call", "has_schema", "parses", "path", "tool", "turns")

    def __init__(self, tool: Tool, bind: Callable[[list[Any]], dict[str, Any] | None], turns: Iterator[bool]) -> None:
        self.tool = tool
        self.path = tool.path
        self.call = tool.call
        self.bind = bind
        self.has_schema = tool.returns is not None
        self.parses = tool.parse_json and not self.has_schema
        self.turns = turns


class QuickCalls:
    """The quick calls of one Repl under the same limits; only for executors that never suspend."""

    def __init__(
        self, setup: Setup, toolbox: Toolbox, media: MediaStore, bounds: tuple[Any, ...], most_rows: int
    ) -> None:
        self._toolbox = toolbox
        self._media = media
        self._bounds = bounds
        self._most_rows = most_rows
        self._running = setup.running_calls
        self._learn = setup.learn
        self._learned = setup.toolbox.learned
        self._clean_error = setup.clean_error
        self._possible = not setup.middleware and setup.secrets is None
        self._tools: dict[str, QuickTool | None] = {}
        self._revision = -1

    def perform(self, entry: CallEntry, clock: RunClock, executor: Executor) -> CallResult | None:
        """Carry a call out; None where it is to go the way of all calls, and nothing has happened yet."""
        if self._revision != self._toolbox.revision:
            self._revision = self._toolbox.revision
            self._tools = {}
        target = entry.target
        quick = self._tools[target] if target in self._tools else self._look_up(target)
        if quick is None or self._media.kept:
            return None
        arguments = quick.bind(entry.given)
        if arguments is None:
            return None
        entry.tool = quick.path
        entry.arguments = arguments
        running = self._running
        try:
            if running.is_crowded():
                running.check_room()
            running.quick.add(entry)
            if entry.left:
                raise ToolError("the run is over", code="cancelled")
            entry.began = monotonic()
            if CLOCK.get() is not clock:  # quicker than to set it for every call
                CLOCK.set(clock)
            result = quick.call(**arguments)
            kind = type(result)
            if _lower is None or kind not in ORDINARY or (kind is str and quick.parses):
                result = self._converted(quick, result, entry, executor)
            else:
                lowered = _lower(result, *self._bounds)
                result = self._converted(quick, result, entry, executor) if lowered is NotImplemented else lowered
            if not quick.has_schema:
                self._learn(quick.tool, result, scripted=True)
            elif next(quick.turns):
                self._learned.add_size(quick.path, result, scripted=True)
            entry.ended = monotonic()
            return "ok", result, None
        except (Exception, SystemExit) as problem:  # noqa: BLE001 - whatever a tool raises becomes the script's error
            entry.ended = monotonic()
            return failure(self._clean_error(to_tool_error(problem, entry.tool)))
        except executor.cancellations:
            entry.ended = monotonic()
            return failure(cancelled_itself(entry.tool))
        finally:
            running.quick.discard(entry)

    def _converted(self, quick: QuickTool, result: Any, entry: CallEntry, executor: Executor) -> Any:
        active = self._media.activate()
        try:
            if type(result) not in ORDINARY:
                running = entry.running = self._running.enter(entry)
                try:
                    result = run_to_end(executor.invoke(partial(collect_rows, result, self._most_rows), entry))
                finally:
                    entry.running = None  # no cycle is left for the garbage collector
                    running.let_go()
            return quick.tool.convert_result(result, *self._bounds)
        finally:
            self._media.deactivate(active)

    def _look_up(self, target: str) -> QuickTool | None:
        tool = self._toolbox.get(target[6:]) if self._possible and target.startswith("tools.") else None
        quick: QuickTool | None = None
        if (
            tool is not None
            and not tool.is_async
            and tool.policy == "auto"
            and tool.max_concurrency is None
            and tool.timeout is None
            and tool.binder is not None
            and (types := tool.plan.scalars) is not None
            and (bind := tool.binder.quick(types)) is not None
        ):
            quick = QuickTool(tool, bind, self._learned.turns(tool.path))
        self._tools[target] = quick
        return quick


def run_to_end(coroutine: Coroutine[Any, Any, T]) -> T:
    """Drive a coroutine that never suspends."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        result: T = stop.value
        return result
    coroutine.close()
    raise RuntimeError("a blocking call tried to suspend")
