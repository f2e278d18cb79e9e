"""The path of a call: resolve, validate, middleware, approval, slot, invoke, convert. Every call takes it.

`CallPath.perform` is a coroutine, but everything it awaits goes through its `Executor`: the blocking one never
suspends, so that `run_to_end` drives it from an ordinary thread; the asyncio one awaits for real.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property, partial
from time import monotonic, time
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from msgspec.structs import replace

from moonbox.audit.records import Try
from moonbox.errors import ArgumentError, Denied, JournalError, ToolError, UsageError
from moonbox.media import ACTIVE_STORE, MediaStore
from moonbox.runs.call_entry import call_key, failure, tool_error
from moonbox.runs.decisions import Allowances, Answer, Decision, Middleware, ToolCall
from moonbox.runs.docs import Docs
from moonbox.runs.environment import AddedFunction, Additions
from moonbox.runs.media_arguments import with_addresses, with_contents
from moonbox.runs.record import CLOCK, RunRecord
from moonbox.runs.slots import Slots
from moonbox.threads import Contained
from moonbox.tools.binding import named_arguments
from moonbox.tools.function import Context
from moonbox.tools.results import collect_rows, convert, to_tool_error
from moonbox.values import ORDINARY, Packed, ValueLimits
from moonbox.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping
    from concurrent.futures import Future

    from moonbox.failures import Failures
    from moonbox.languages.registry import Language
    from moonbox.limits import Limits
    from moonbox.retry import Retry
    from moonbox.runs.call_entry import CallEntry, CallResult
    from moonbox.runs.services import Services
    from moonbox.runs.settings import Settings
    from moonbox.tools.tool import Tool
    from moonbox.tools.toolbox import Toolbox

    T = TypeVar("T")


class Executor(Protocol):
    """How to wait, and where sync tools run."""

    def is_cancelled(self, problem: BaseException) -> bool:
        """Whether it cancels the task that performs the call, as against a cancellation that the tool raised."""

    async def invoke(self, call: Callable[[], Any], entry: CallEntry, *, is_async: bool = False) -> Any:
        """Run it and give its result, awaited if need be. The driver of the run abandons it at the entry's deadline.

        It holds `entry.running` until it has ended.
        """

    async def settle(self, value: Any) -> Any:
        """A value, or the result of an awaitable."""

    async def pause(self, seconds: float, entry: CallEntry) -> None:
        """Wait so long, or until the run no longer waits for the entry."""

    async def ask(self, approve: Callable[[ToolCall], Any], call: ToolCall, entry: CallEntry) -> Any:
        """The answer of an approver, which may block. It is cancelled when the run no longer waits for the entry."""

    async def wait(self, slots: Slots, turn: Future[None], entry: CallEntry) -> None: ...


class CallPath:
    """The path of every call of one Repl under the same limits, or of one direct call.

    Made with every Repl, most of which never call: what only calls need is looked up in the Services then.
    """

    warm_until = 0.0
    """On the monotonic clock: until then a tool thread drives a blocking run from its beginning."""

    def __init__(
        self,
        settings: Settings,
        services: Services,
        toolbox: Toolbox,
        additions: Additions,
        limits: Limits,
        allowances: Allowances | None = None,
        media: MediaStore | None = None,
        *,
        direct: bool = False,
    ) -> None:
        self.toolbox = toolbox
        self.media = MediaStore() if media is None else media
        """What the Repl was given of images, audio and files."""
        self.additions = additions
        self.limits = limits
        self.language: Language = settings.language
        self.value_limits = ValueLimits.of(limits, settings.allow_nan)
        self.most_elements = min(limits.max_array * 80, limits.max_memory // 10) + 20_000
        """So many elements may come from the worker in one run."""
        self._settings = settings
        self._services = services
        self._direct = direct
        self._first = 0 if direct else settings.language.first_index  # the number of the first element of a list
        self._allowances = Allowances() if allowances is None else allowances

    @cached_property
    def docs(self) -> Docs:
        """The documentation that scripts read."""
        tools = self._services.tools
        search = tools.search(self.toolbox)
        return Docs(self.toolbox, self.additions.docs, self.language.name, tools.learned, search=search)

    def prepare(self, entry: CallEntry) -> Tool | AddedFunction:
        """Resolve and validate; ToolError says what is wrong."""
        space, _, name = entry.target.partition(".")
        if space == "fn" and name in self.additions.functions:
            return self.additions.functions[name]
        if space != "tools":
            raise ArgumentError(f"there is no function '{name}'", code="unknown_function")
        tool = self.toolbox.by_name.get(name) or self.toolbox.resolve(name)
        entry.tool, entry.only_computes = tool.path, not tool.thread
        given = with_addresses(entry.given, tool) if self.media.kept else entry.given
        try:
            entry.arguments = tool.binder.bind(given, tool.path, self._first, is_json_call=self._direct)
        except ArgumentError:
            entry.arguments = tool.binder.named(given, tool.path)
            raise
        return tool

    async def perform(self, entry: CallEntry, run: RunRecord, executor: Executor) -> CallResult:
        """Carry a call out; whatever goes wrong on the way is in the result."""
        services = self._services
        records = services.records
        token = ACTIVE_STORE.set(self.media)
        try:
            try:
                if entry.question is not None:
                    await self._decide(entry.question, entry, run, executor)
                    return "ok", None, None
                target = self.prepare(entry)
                services.running_calls.enter(entry)
                packed = await self._call(target, entry, run, executor)
                entry.ended = monotonic()
                if records.secrets is not None and (not isinstance(target, AddedFunction) or target.cleaned):
                    packed = records.clean_result(packed)
                result: CallResult = "ok", packed, None
            except BaseException as problem:
                entry.ended = monotonic()
                if executor.is_cancelled(problem):
                    raise
                if isinstance(problem, Contained):
                    problem = problem.problem
                result = failure(records.clean_error(to_tool_error(problem, entry.tool, self._codes(entry))))
            if run.intents is not None:
                await self._write_end(result, entry, run, executor)
            return result
        finally:
            if entry.running is not None:
                entry.running.let_go(entry)
            ACTIVE_STORE.reset(token)

    def _codes(self, entry: CallEntry) -> Mapping[type[BaseException], str]:
        tool = self.toolbox.get(entry.tool) if entry.target.startswith("tools.") else None
        return {} if tool is None else tool.errors

    def answered(self, answer: Answer, entry: CallEntry) -> CallResult:
        """The result of a call that its caller answered instead of the tool."""
        if answer.kind == "error":
            return "error", None, tool_error(answer)
        tool = self.toolbox.get(entry.tool) if entry.target.startswith("tools.") else None
        try:
            with self.media.active():
                return "ok", self._packed(answer.result, tool), None
        except ToolError as error:
            return failure(error)

    def view(self, tool: Tool | None, entry: CallEntry, run: RunRecord, result: Any = None) -> ToolCall:
        """The call as people, middleware and step-by-step callers see it."""
        return ToolCall(
            tool=entry.tool,
            definition=tool,
            arguments=entry.arguments,
            index=entry.index,
            run_id=run.id,
            repl_id=run.repl_id,
            result=result,
            id=entry.id,
            source="" if self._direct else run.source,
            language=self.language.name,
            context=run.context,
            labels=run.labels,
        )

    async def _call(self, target: Tool | AddedFunction, entry: CallEntry, run: RunRecord, executor: Executor) -> Packed:
        """Call it, if middleware and people agree, and convert what it returns."""
        tool = None if isinstance(target, AddedFunction) else target
        if tool is not None and (tool.policy != "auto" or tool.max_concurrency or self._settings.middleware):
            answer = await self._admit(tool, entry, run, executor)
            if answer is not None:
                return self._packed(answer.result, tool)
        if tool is None:
            return self._packed(await self._invoke(target, entry, run, executor))
        failures = tool.failures or self._settings.failures
        if tool.retry is None:
            result = await self._invoke(tool, entry, run, executor)
            packed = convert(result, tool, self.value_limits, failures, run.note)
        else:
            packed = await self._tried(tool, tool.retry, failures, entry, run, executor)
        tools = self._services.tools
        if tools.learned.is_due(tool.path):
            tools.learn(tool, packed, self._services.records, scripted=not self._direct)
        for layer in reversed(self._settings.middleware):
            if layer.after is not None:
                changed = await executor.settle(layer.after(self.view(tool, entry, run, packed.value)))
                if isinstance(changed, ToolCall):
                    packed = self._packed(changed.result, tool)
                elif changed is not None:
                    raise UsageError(f"after(call) must return None or call.with_result(…), not {changed!r}")
        return packed

    async def _tried(
        self, tool: Tool, retry: Retry, failures: Failures, entry: CallEntry, run: RunRecord, executor: Executor
    ) -> Packed:
        """Invoke the tool, and again where it fails for a moment and the run has the time."""
        tries: list[Try] = []
        while True:
            began, since = time(), monotonic()
            failed: ToolError | None = None
            try:
                result = await self._invoke(tool, entry, run, executor)
                packed = convert(result, tool, self.value_limits, failures, run.note)
            except Exception as problem:
                if executor.is_cancelled(problem) or isinstance(problem, Contained):
                    raise
                failed = self._services.records.clean_error(to_tool_error(problem, tool.path, tool.errors))
                wait = retry.seconds(len(tries) + 1, failed, self._services.random.random())
                if wait is not None and not _has_time(monotonic() + wait, run.clock.deadline, entry.deadline):
                    wait = None
                if wait is None and not tries:
                    raise
            code, message = ("", "") if failed is None else (failed.code, failed.message)
            tries.append(Try(began, monotonic() - since, code, message))
            entry.tries = tuple(tries)
            if failed is None:
                return packed
            if wait is None:
                raise failed
            await executor.pause(wait, entry)
            if entry.left:
                raise ToolError("the run is over", code="cancelled")

    async def _admit(self, tool: Tool, entry: CallEntry, run: RunRecord, executor: Executor) -> Answer | None:
        """Ask middleware and people, and wait for a slot. An answer of middleware takes the place of the call."""
        if tool.policy == "direct" and not self._direct:
            raise Denied(f"scripts cannot call the tool '{tool.path}'; use a direct tool call instead")
        for layer in self._settings.middleware:
            if layer.before is not None:
                answer = await self._before(layer, tool, entry, run, executor)
                if answer is not None:
                    return answer
        if tool.policy == "approve":
            await self._approved(tool, entry, run, executor)
        if tool.max_concurrency is not None:
            await self._wait_for_slot(tool, tool.max_concurrency, entry, executor)
        return None

    async def _invoke(self, target: Tool | AddedFunction, entry: CallEntry, run: RunRecord, executor: Executor) -> Any:
        """Write the call down where the trail is durable, then invoke. Writing may wait: not on an event loop."""
        if isinstance(target, AddedFunction):
            call, is_async, timeout = *self._added(target, entry), None
        else:
            context = self._context(target, entry, run) if target.plan.injected else None
            arguments = with_contents(entry.arguments, target, self.media) if self.media.kept else entry.arguments
            call, is_async = partial(target.invoke, arguments, context, first_index=self._first), target.is_async
            timeout = target.timeout
            if target.placement == "node" and (cluster := self._services.cluster) is not None:
                from moonbox.cluster.node_tools import call_on_node

                call = partial(call_on_node, target, arguments, context, cluster, self.value_limits)
                is_async = False
        if entry.began is None:  # else it is tried again
            entry.begin(timeout)
        intents, most = run.intents, self.limits.max_array
        outer = CLOCK.get()

        def write_and_call() -> Any:
            if intents is not None:
                intents.start(entry, run.head)
            result = call()
            if type(result) not in ORDINARY:
                result = collect_rows(result, most)
            if entry.left and isinstance(result, CoroutineType):
                result.close()  # the run does not wait for it
                raise ToolError("the run is over", code="cancelled")
            return result

        CLOCK.set(run.clock)
        try:
            if not is_async:
                return await executor.invoke(write_and_call, entry, is_async=False)
            if intents is not None:
                await executor.invoke(lambda: intents.start(entry, run.head), entry, is_async=False)
            return await executor.invoke(call, entry, is_async=True)
        finally:
            CLOCK.set(outer)  # the thread may be the caller's, whose next work has no end

    def _added(self, function: AddedFunction, entry: CallEntry) -> tuple[Callable[[], Any], bool]:
        """What calls a function that the caller added, and whether that gives an awaitable."""
        from inspect import iscoroutinefunction  # slow to load

        call = partial(function.call, *entry.arguments)
        if self._services.records.redactor is not None:  # which hides fields by their names: the record needs them
            entry.arguments = named_arguments(function.call, entry.arguments)
        return call, iscoroutinefunction(function.call)

    @staticmethod
    def _context(tool: Tool, entry: CallEntry, run: RunRecord) -> Context:
        return Context(
            run_id=run.id,
            repl_id=run.repl_id,
            tool=tool.path,
            index=entry.index,
            idempotency_key=call_key(run.id, entry.id),
            extra=run.context,
            cancelled=lambda: entry.left,
            labels=run.labels,
            report=entry.report,
        )

    async def _write_end(self, result: CallResult, entry: CallEntry, run: RunRecord, executor: Executor) -> None:
        """Write down what came of a call, unless it was refused before anything could begin."""
        intents = run.intents
        if intents is not None and entry.running is not None:
            with suppress(ToolError):  # no thread could be started: in the trail, the call stays in flight
                await executor.invoke(lambda: intents.end(entry, run.head, result), entry, is_async=False)

    async def _before(
        self, layer: Middleware, tool: Tool, entry: CallEntry, run: RunRecord, executor: Executor
    ) -> Answer | None:
        assert layer.before is not None
        changed = await executor.settle(layer.before(self.view(tool, entry, run)))
        if changed is None or isinstance(changed, Answer):
            return changed
        if isinstance(changed, ToolCall):
            entry.arguments = self._bound(dict(changed.arguments), tool)
            return None
        if isinstance(changed, Decision) and changed.kind == "deny":
            raise Denied(changed.reason or f"the call of '{tool.path}' was refused")
        raise UsageError(
            f"before(call) must return None, call.with_arguments(…), call.answer(…) or call.refuse(…), not {changed!r}"
        )

    async def _approved(self, tool: Tool, entry: CallEntry, run: RunRecord, executor: Executor) -> None:
        decision = await self._decide(self.view(tool, entry, run), entry, run, executor)
        if decision.kind == "edit":
            entry.original_arguments = entry.arguments
            entry.arguments = self._bound(dict(decision.arguments or {}), tool)
        if (journal := run.journal) is not None:
            await executor.invoke(lambda: journal.approved(entry), entry)

    async def _decide(self, call: ToolCall, entry: CallEntry, run: RunRecord, executor: Executor) -> Decision:
        """What a person says, or has said before, about a call or a script; raises Denied where they decline it."""
        decision, changed = self._allowances.find(call)
        if decision is None:
            decision = await self._ask(replace(call, changed=changed), entry, run, executor)
            if decision.kind == "always":
                entry.allowance = self._allowances.add(call, decision)
        entry.decide(decision)
        if decision.kind == "deny":
            declined = f"a person declined this {call.kind}"
            message = f"{declined}: {decision.reason}" if decision.reason else declined
            raise Denied(message, code="approval_denied")
        if decision.kind == "edit":
            entry.edited = dict(decision.arguments or {})
        return decision

    async def _ask(self, call: ToolCall, entry: CallEntry, run: RunRecord, executor: Executor) -> Decision:
        """Ask the person. The run's clock stands still for that time."""
        approve = run.approve if call.kind == "call" else run.approve_script
        what = f"the tool '{call.tool}'" if call.kind == "call" else "the script"
        if approve is None:
            entry.approval = "denied"
            raise Denied(
                f"{what} needs a person's approval, and nobody can be asked here; go on without it",
                code="approval_unavailable",
            )
        try:
            if run.journal is not None and run.journal.may_leave_people:
                entry.asked = monotonic()
            with run.clock.standing_still():
                decision = Decision.of(await executor.ask(approve, call, entry))
            edits_script = call.kind == "script" and decision.kind == "edit"
            if edits_script and not isinstance((decision.arguments or {}).get("script"), str):
                raise UsageError("a script is edited with edit({'script': …})")
            return decision
        except ToolError:  # it was raised for the script
            raise
        except JournalError as problem:  # which does not answer for the person: the run can be resumed
            if run.journal is not None:
                run.journal.fail(problem)
            raise
        except Exception as problem:
            raise Denied(
                f"{what} needs a person's approval, and the host could not ask for it; go on without it",
                code="approval_unavailable",
            ) from problem
        finally:
            entry.asked = None

    async def _wait_for_slot(self, tool: Tool, most: int, entry: CallEntry, executor: Executor) -> None:
        """The call keeps the slot until its tool has ended, even if the run no longer waits for it."""
        slots = self._services.slots.setdefault(tool.path, Slots(most))
        if slots.most != most:  # the tool was replaced
            slots.resize(most)
        future = slots.enter()
        if future is not None:
            if tool.timeout is not None and self._services.running_calls.all_left(slots):
                entry.obstacle = (
                    f"{tool.path} takes {counted(slots.most, 'call')} at once (max_concurrency), "
                    "and earlier ones that timed out are still running"
                )
                entry.deadline = monotonic() + tool.timeout
            await executor.wait(slots, future, entry)
        entry.slots = slots

    def _bound(self, arguments: Any, tool: Tool) -> dict[str, Any]:
        """The arguments by name, validated, with defaults."""
        return tool.binder.bind(arguments, tool.path, self._first, is_json_call=self._direct)

    def _packed(self, result: Any, tool: Tool | None = None) -> Packed:
        """What a function, middleware or a caller gave as a result, the last two instead of a tool."""
        failures = None if tool is None else tool.failures
        return convert(result, None, self.value_limits, failures or self._settings.failures)


def _has_time(until: float, *deadlines: float | None) -> bool:
    return all(deadline is None or until < deadline for deadline in deadlines)


def run_to_end(coroutine: Coroutine[Any, Any, T]) -> T:
    """Drive a coroutine that never suspends."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        result: T = stop.value
        return result
    coroutine.close()
    raise RuntimeError("a blocking call tried to suspend")
