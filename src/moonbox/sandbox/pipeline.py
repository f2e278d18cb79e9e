"""The way of a call: resolve, validate, middleware, approval, run, convert, record. One path for sync and async.

`Pipeline.perform` is a coroutine, but everything it awaits goes through its `Executor`: the blocking one never
suspends, so that a plain `send(None)` drives it to its end; the asyncio one awaits for real.
"""

from __future__ import annotations

import inspect
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from moonbox.errors import ArgumentError, ConversionError, Denied, ToolError, UsageError
from moonbox.sandbox.clock import CLOCK
from moonbox.sandbox.decisions import Answer, Decision, ToolCall
from moonbox.tools.function import Context
from moonbox.tools.results import to_tool_error
from moonbox.values import measure, plain

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from concurrent.futures import Future

    from moonbox.limits import Limits
    from moonbox.sandbox.conversation import Request
    from moonbox.sandbox.decisions import Middleware
    from moonbox.sandbox.docs import Docs
    from moonbox.sandbox.recorder import CallEntry, Recorder
    from moonbox.sandbox.slots import Gate, Slots
    from moonbox.tools.tool import Tool
    from moonbox.tools.toolbox import Toolbox

__all__ = ["Executor", "HostFunction", "Pipeline", "Reply"]

Reply = tuple[int, bool, Any]


@dataclass(frozen=True, slots=True)
class HostFunction:
    """A function of the host that scripts call by its bare name, with positional arguments."""

    name: str
    call: Callable[..., Any]
    doc: str = ""
    counted: bool = True
    """Whether it is spent from `max_tool_calls`."""


class Executor(Protocol):
    """How to wait, and where sync tools run."""

    async def invoke(self, call: Callable[[], Any], entry: CallEntry, *, is_async: bool) -> Any:
        """Run it and give its result, awaited if need be. Whoever drives the run ends it at the entry's deadline."""

    async def settle(self, value: Any) -> Any:
        """A value, or what an awaitable comes to."""

    async def wait(self, future: Future[None]) -> None: ...


class Pipeline:
    """Performs the calls of one Repl."""

    def __init__(
        self,
        *,
        toolbox: Toolbox,
        functions: Mapping[str, HostFunction],
        docs: Docs,
        limits: Limits,
        middleware: Sequence[Middleware],
        approve: Callable[[ToolCall], Any | Awaitable[Any]] | None,
        slots: Slots,
        context: Mapping[str, Any],
        allow_nan: bool,
        first_index: int = 1,
        direct: bool = False,
        always: set[str] | None = None,
    ) -> None:
        self._toolbox = toolbox
        self._functions = functions
        self._docs = docs
        self._limits = limits
        self._middleware = middleware
        self._approve = approve
        self._slots = slots
        self._context = context
        self.allow_nan = allow_nan
        self._first = first_index
        self._direct = direct
        self._always: set[str] = set() if always is None else always  # paths of tools that need no more asking

    # What is not a call of the user's: answered at once, not counted

    def immediate(self, request: Request, recorder: Recorder) -> Reply | None:
        """The answer to a question about the clock or the documentation; None for a call."""
        space, _, name = request.target.partition(".")
        if space == "sys":
            return request.id, True, self._clock(name, recorder)
        if space == "docs":
            try:
                return request.id, True, self._docs.answer(name, request.arguments)
            except ToolError as error:
                return request.id, False, _as_dict(error, None)
        return None

    @staticmethod
    def _clock(name: str, recorder: Recorder) -> Any:
        value: Any = int(time.time()) if name == "time" else round(recorder.clock.elapsed(), 6)
        recorder.observed(f"os.{name}", value)
        return value

    def counts(self, request: Request) -> bool:
        """Whether the request is spent from the call budget."""
        function = self._functions.get(request.target[3:]) if request.target.startswith("fn.") else None
        return function is None or function.counted

    # Calls

    def record(self, request: Request, batch: int, recorder: Recorder) -> CallEntry:
        """Enter a call in the record before anything else happens to it.

        Its arguments are a dict by name: as the script wrote them until they are bound, or if they are not valid; with
        defaults once they are bound. Arguments that cannot be named, as those of a host function, are a list.
        """
        space, _, name = request.target.partition(".")
        given = request.arguments
        arguments = given[0] if space == "tools" and _is_named(given) else given
        return recorder.call(batch, request.id, name, arguments, request.size)

    def prepare(self, request: Request, entry: CallEntry) -> Tool | HostFunction:
        """Resolve and validate; ToolError says what is wrong."""
        space, _, name = request.target.partition(".")
        if space == "fn" and name in self._functions:
            return self._functions[name]
        if space != "tools":
            raise ArgumentError(f"there is no function '{name}'", code="unknown_function")
        tool = self._toolbox.resolve(name)
        entry.tool = tool.path
        try:
            entry.arguments = tool.bind(request.arguments, first_index=self._first, is_json_call=self._direct)
        except ArgumentError:
            if tool.binder is not None:
                entry.arguments = tool.binder.named(request.arguments, tool.path)
            raise
        return tool

    async def perform(self, request: Request, entry: CallEntry, recorder: Recorder, executor: Executor) -> Reply:
        """Carry a recorded call out, to its answer."""
        span = recorder.call_span(entry, known=entry.tool in self._toolbox or entry.tool in self._functions)
        try:
            target = self.prepare(request, entry)
            recorder.find_retry(entry)
            if isinstance(target, HostFunction):
                result = await self._perform_function(target, entry, executor)
            else:
                result = await self._perform_tool(target, entry, recorder, executor)
            entry.succeed(result)
            return request.id, True, result
        except (Exception, SystemExit) as problem:  # noqa: BLE001 - whatever a tool raises becomes the script's error
            error = to_tool_error(problem, entry.tool)
            status: Any = "denied" if isinstance(error, Denied) else "timeout" if error.code == "timeout" else "error"
            entry.fail(error, status)
            recorder.failed(entry)
            return request.id, False, self.error_value(error, entry)
        finally:
            if span is not None:
                span.end(entry.to_call())

    def error_value(self, error: ToolError, entry: CallEntry) -> dict[str, Any]:
        return _as_dict(error, entry.tool)

    def answered(self, request: Request, entry: CallEntry, answer: Answer) -> Reply:
        """The reply that a step-by-step caller gave."""
        if answer.kind == "error":
            error = ToolError(answer.message, code=answer.code, retryable=answer.retryable, data=answer.data)
            entry.fail(error)
            return request.id, False, self.error_value(error, entry)
        try:
            result = self._convert_plain(answer.result)
        except ToolError as error:
            entry.fail(error)
            return request.id, False, self.error_value(error, entry)
        entry.succeed(result)
        return request.id, True, result

    async def _perform_function(self, function: HostFunction, entry: CallEntry, executor: Executor) -> Any:
        arguments = entry.arguments
        entry.begin()
        is_async = inspect.iscoroutinefunction(function.call)
        result = await executor.invoke(lambda: function.call(*arguments), entry, is_async=is_async)
        return self._convert_plain(result)

    async def _perform_tool(self, tool: Tool, entry: CallEntry, recorder: Recorder, executor: Executor) -> Any:
        if tool.policy == "direct" and not self._direct:
            raise Denied(f"the tool '{tool.path}' cannot be called from a script: ask for it as a direct tool call")
        for layer in self._middleware:
            if layer.before is not None:
                answer = await self._before(layer, tool, entry, recorder, executor)
                if answer is not None:
                    return self._convert_plain(answer.result)
        if tool.policy == "approve" and tool.path not in self._always:
            await self._ask(tool, entry, recorder, executor)
        context = Context(
            run_id=recorder.run_id, repl_id=recorder.repl, tool=tool.path, index=entry.index, extra=self._context
        )
        arguments = entry.arguments
        gate = self._slots.gate(tool)
        if gate is not None:
            await self._pass(gate, executor)
        try:
            entry.begin(tool.timeout)
            CLOCK.set(recorder.clock)
            result = await executor.invoke(
                lambda: tool.invoke(arguments, context, first_index=self._first), entry, is_async=tool.is_async
            )
        finally:
            if gate is not None:
                gate.leave()
        result = tool.convert_result(
            result,
            max_string=self._limits.max_string,
            max_array=self._limits.max_array,
            max_depth=self._limits.max_depth,
            allow_nan=self.allow_nan,
        )
        for layer in reversed(self._middleware):
            if layer.after is not None:
                changed = await executor.settle(layer.after(self.view(tool, entry, recorder, result)))
                if isinstance(changed, ToolCall):
                    result = self._convert_plain(changed.result)
                elif changed is not None:
                    raise UsageError(f"after(call) must return None or call.with_result(…), not {changed!r}")
        return result

    @staticmethod
    async def _pass(gate: Gate, executor: Executor) -> None:
        future = gate.enter()
        if future is not None:
            try:
                await executor.wait(future)
            except BaseException:
                gate.give_up(future)
                raise

    async def _before(
        self, layer: Middleware, tool: Tool, entry: CallEntry, recorder: Recorder, executor: Executor
    ) -> Answer | None:
        assert layer.before is not None
        said = await executor.settle(layer.before(self.view(tool, entry, recorder)))
        if said is None:
            return None
        if isinstance(said, ToolCall):
            entry.arguments = tool.bind(dict(said.arguments), first_index=self._first)
            return None
        if isinstance(said, Answer):
            return said
        if isinstance(said, Decision) and said.kind == "deny":
            raise Denied(said.reason or f"the call of '{tool.path}' was refused")
        raise UsageError(
            f"before(call) must return None, call.with_arguments(…), call.answer(…) or call.refuse(…), not {said!r}"
        )

    async def _ask(self, tool: Tool, entry: CallEntry, recorder: Recorder, executor: Executor) -> None:
        """Ask the person; the run's clock stands still meanwhile."""
        if self._approve is None:
            entry.approval = "denied"
            raise Denied(
                f"the tool '{tool.path}' needs a person's approval and nobody can be asked here; do without it",
                code="approval_unavailable",
            )
        with recorder.clock.standing_still():
            decision = Decision.of(await executor.settle(self._approve(self.view(tool, entry, recorder))))
        if decision.kind == "deny":
            entry.approval = "denied"
            raise Denied(
                f"a person declined this call{': ' + decision.reason if decision.reason else ''}",
                code="approval_denied",
            )
        if decision.kind == "edit":
            entry.arguments = tool.bind(dict(decision.arguments or {}), first_index=self._first)
        if decision.kind == "always":
            self._always.add(tool.path)
        entry.approval = {"allow": "allowed", "always": "always", "edit": "edited"}[decision.kind]

    def view(self, tool: Tool | None, entry: CallEntry, recorder: Recorder, result: Any = None) -> ToolCall:
        return ToolCall(
            tool, entry.tool, entry.arguments, entry.index, recorder.run_id, recorder.repl, result, entry.id
        )

    def _convert_plain(self, result: Any) -> Any:
        limits = self._limits
        try:
            value = plain(result, allow_nan=self.allow_nan, max_depth=limits.max_depth, path="result")
            measure(
                value,
                max_string=limits.max_string,
                max_array=limits.max_array,
                max_depth=limits.max_depth,
                path="result",
            )
        except ConversionError as problem:
            code = "result_too_large" if problem.limit else "bad_result"
            raise ToolError(str(problem), code=code) from None
        return value


def _is_named(arguments: list[Any]) -> bool:
    """Whether a call was given one table of named arguments."""
    return len(arguments) == 1 and type(arguments[0]) is dict and all(type(name) is str for name in arguments[0])


def _as_dict(error: ToolError, tool: str | None) -> dict[str, Any]:
    """What the script gets of an error."""
    value: dict[str, Any] = {"code": error.code, "message": error.message, "retryable": bool(error.retryable)}
    name = error.tool or tool
    if name:
        value["tool"] = name
    if error.data is not None:
        try:
            value["data"] = plain(error.data)
        except ConversionError:
            value["data"] = str(error.data)[:500]
    return value
