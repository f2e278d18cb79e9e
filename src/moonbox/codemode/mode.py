"""CodeMode: one code tool with a catalog, the tools that stay direct, and the answers to the model's calls."""

from __future__ import annotations

import copy
import os
import threading
import uuid
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack
from weakref import WeakKeyDictionary

from msgspec.structs import replace

from moonbox.audit.answer import json_reply
from moonbox.closing import Closing
from moonbox.codemode.catalog import Catalog, rough_tokens
from moonbox.codemode.client_calls import ClientCalls, DirectStep, Paused, Reply, take_turn
from moonbox.codemode.definitions import Definition, Format, in_format
from moonbox.codemode.misdirected import misdirection
from moonbox.codemode.sessions import Sessions, TooManySessions
from moonbox.codemode.shown import Choice, ToolPresentation, View
from moonbox.errors import ArgumentError, ClosedError, PoolTimeout, UsageError, WorkerError
from moonbox.runs.calls import run_to_end
from moonbox.runs.decisions import ToolCall
from moonbox.runs.options import CONVERSATION, RunOptions, check_callbacks, label_text, merged
from moonbox.runs.slots import Turns
from moonbox.sandbox.repl import Repl
from moonbox.sandbox.sandbox import Sandbox
from moonbox.tools.toolbox import Toolbox

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from moonbox.audit.records import Run
    from moonbox.codemode.client_calls import Place
    from moonbox.config.sections import CodeModeSettings
    from moonbox.durable.index import KnownRun
    from moonbox.tools.tool import Tool

__all__ = ["Choice", "CodeMode", "Conversation", "Paused", "Reply"]

_MOST_CONVERSATIONS = 100
_ENDED = "error: the conversation was ended while the script waited; its state is lost"
_BUSY = Reply("error: an earlier script of this conversation waits for the client's answers; resume it first", True)


def _settings(data: Mapping[str, Any], section: str) -> CodeModeSettings:
    from moonbox.config.reader import read
    from moonbox.config.sections import CodeModeSettings  # imports pydantic, which takes its time

    return read(CodeModeSettings, data, section)


class CodeMode(Closing):
    """What the model is shown of a Sandbox's tools, and the handler of its calls.

    In place of a Sandbox, give what `Sandbox(tools=…)` takes: `CodeMode([get_expenses])`. Or give a Repl: its tools and
    what was defined on it are described, and the conversation without a name is that Repl, which stays open. Scripts
    reach every tool that it has. Other conversations have Repls that are made as it was.
    `settings` are those of `CodeModeSettings`: keep_visible, full_schemas, mode, approvals, name, parameter, …
    `client_calls` answers calls of client-side tools, sync or async; without it `handle` returns a Paused for them, and
    the model may call them directly. With `can_pause=False` scripts do not reach them: nobody resumes a Paused.
    `later` are namespaces whose tools come later, so that `keep_visible` may name tools that are not there yet.
    """

    def __init__(
        self,
        sandbox: Any,
        *,
        count_tokens: Callable[[str], int] | None = None,
        idle_seconds: float | None = 3600.0,
        max_conversations: int = _MOST_CONVERSATIONS,
        later: Collection[str] = (),
        client_calls: Callable[[ToolCall], Any] | None = None,
        can_pause: bool = True,
        **settings: Any,
    ) -> None:
        check_callbacks(count_tokens=count_tokens, client_calls=client_calls)
        if isinstance(max_conversations, bool) or not isinstance(max_conversations, int) or max_conversations < 1:
            raise UsageError(f"max_conversations must be a whole number of at least 1, not {max_conversations!r}")
        if idle_seconds is not None and not (isinstance(idle_seconds, int | float) and idle_seconds > 0):
            raise UsageError(f"idle_seconds must be a positive number or None, not {idle_seconds!r}")
        self.settings = _settings(settings, "")
        self._given = given = sandbox if isinstance(sandbox, Repl) else None
        self._own_sandbox = None if given is not None or isinstance(sandbox, Sandbox) else Sandbox(sandbox)
        self.sandbox: Sandbox = given.sandbox if given is not None else self._own_sandbox or sandbox
        self._can_pause = can_pause
        self._shown = ToolPresentation(
            self.sandbox,
            given,
            self.settings,
            count=count_tokens or rough_tokens,
            later=later,
            client_tools="hidden" if client_calls is not None else "kept" if can_pause else "direct",
        )
        self.sessions: Sessions[Repl] = Sessions(
            lambda repl: None if repl is given else repl.close(),
            sleep=lambda repl: repl.sleep if self.sandbox.has_journal and not (repl is given or repl.paused) else None,
            most=max_conversations,
            idle_seconds=idle_seconds,
        )
        """The Repl of each conversation. With a journal, the least used fall asleep where there are too many."""
        self._all_turns: WeakKeyDictionary[Repl, Turns] = WeakKeyDictionary()
        self._client_calls = ClientCalls(client_calls, finished=self._answer, lost=self._lost)
        self._mark = uuid.uuid4().hex
        self._suffix = ""
        """Follows a conversation's name in `sessions`, after the mark, where the tools are not the Sandbox's alone."""
        self._ended = threading.Event()

    def with_tools(self, tools: Any) -> CodeMode:
        """This code mode with further tools, for an agent that has its own.

        It has the same Sandbox and settings, and script state of its own: `end` and `close` of this one end that too.
        """
        other = copy.copy(self)
        other._own_sandbox = None
        other._suffix = self._mark + uuid.uuid4().hex
        other._shown = self._shown.of(Toolbox.of([self._shown.toolbox, tools]))
        return other

    @classmethod
    def from_config(cls, sandbox: Any, config: Mapping[str, Any] | None, **options: Any) -> CodeMode:
        """From a dict or a TOML table, or None for the defaults; wrong keys, types and tools are refused."""
        return cls(sandbox, **options, **vars(_settings(config or {}, "codemode")))

    @staticmethod
    def config_schema() -> dict[str, Any]:
        """The settings as JSON Schema."""
        from moonbox.config.reader import schema
        from moonbox.config.sections import CodeModeSettings

        return schema(CodeModeSettings)

    # What the model is shown

    @property
    def tool_name(self) -> str:
        """The code tool's name."""
        return self._shown.name

    @property
    def parameter(self) -> str:
        return self._shown.parameter

    @property
    def description(self) -> str:
        """The code tool's description, catalog included."""
        return self._current().code.description

    @property
    def catalog(self) -> Catalog:
        return self._current().catalog

    @property
    def choice(self) -> Choice:
        """Whether the code tool is offered, and what either way costs."""
        return self._current().choice

    @property
    def direct_tools(self) -> tuple[Tool, ...]:
        """The tools that the model calls itself."""
        return tuple(self._current().direct.values())

    @property
    def hidden_tools(self) -> tuple[Tool, ...]:
        """The tools that scripts reach."""
        return tuple(self._shown.routes.hidden) if self.choice.code else ()

    def show_learned(self) -> None:
        """Show what was learned of results since the start; the definitions change, and prompt caches with them."""
        self._shown.learn(shapes=True)

    def definitions(self, form: Format = "openai", *, labels: Mapping[str, str] | None = None) -> list[dict[str, Any]]:
        """The code tool and the direct tools in a provider's format.

        `labels` are those of the conversation: groups of tools that they name get their signatures first.
        """
        return in_format(self.neutral_definitions(labels), form)

    def neutral_definitions(self, labels: Mapping[str, str] | None = None) -> list[Definition]:
        """The same before any provider's format: the code tool first."""
        return self._shown.definitions(self._current(), labels)

    @property
    def system_prompt(self) -> str:
        """An addition to the system prompt, at most 500 bytes."""
        view = self._current()
        needed = view.choice.code and not view.choice.both
        return self._shown.prompt() if needed else self.settings.system_prompt or ""

    # The model's calls

    def handle(self, name: str, arguments: Any, *, conversation: str = "", **options: Unpack[RunOptions]) -> str:
        """Answer one call: what goes back to the model. What the model got wrong is in the text, nothing is raised.

        The options are those of `Repl.run`, such as `context` and `labels`: for whom the call is. A call of a
        client-side tool gives a Paused instead, unless there is `client_calls`.
        """
        return self.reply(name, arguments, conversation=conversation, **options).text

    async def ahandle(self, name: str, arguments: Any, *, conversation: str = "", **options: Unpack[RunOptions]) -> str:
        """The same, awaited."""
        return (await self.areply(name, arguments, conversation=conversation, **options)).text

    def reply(
        self,
        name: str,
        arguments: Any,
        *,
        conversation: str = "",
        pause: bool | None = None,
        **options: Unpack[RunOptions],
    ) -> Reply:
        """Like `handle`, with the Run and whether it failed.

        A call of a client-side tool gives a Reply with `paused`, whose `reply` answers it. With `pause=False` it fails.
        """
        return run_to_end(self._reply(name, arguments, conversation, pause, options, awaited=False))

    async def areply(
        self,
        name: str,
        arguments: Any,
        *,
        conversation: str = "",
        pause: bool | None = None,
        **options: Unpack[RunOptions],
    ) -> Reply:
        """The same, awaited."""
        return await self._reply(name, arguments, conversation, pause, options, awaited=True)

    async def _reply(
        self, name: str, arguments: Any, conversation: str, pause: bool | None, options: RunOptions, *, awaited: bool
    ) -> Reply:
        if not isinstance(conversation, str):
            raise UsageError(f"conversation must be a name, not {conversation!r}")
        options = merged({"labels": {CONVERSATION: label_text(conversation)}} if conversation else {}, options)
        prepared = self._shown.read(name, arguments, self._current())
        if isinstance(prepared, Reply):
            return prepared
        pauses = self._can_pause if pause is None else pause
        asks, drive = pauses or self._client_calls.answered, self._client_calls.drive
        try:
            if not isinstance(prepared, str):
                tool, given = prepared
                if tool.answered_by_caller and asks:
                    with ExitStack() as turn:
                        step = partial(self._direct_step, tool, given, options)
                        return await drive(step, None, turn, awaited=awaited)
                call: Any = self.sandbox.acall if awaited else self.sandbox.call
                run = call(tool.path, given, toolbox=self._shown.toolbox, **options)
                return self._answer(await run if awaited else run)
            with (
                self.sessions.use(conversation + self._suffix, partial(self._new_repl, conversation)) as repl,
                ExitStack() as turn,
            ):
                if self._shown.routes.has_client_tools:
                    await take_turn(self._turns(repl), turn, awaited=awaited)
                if repl.paused:
                    return _BUSY
                if self._shown.routes.has_client_tools and asks:
                    start = partial(repl.start, prepared, **options)
                    return await drive(start, self._place(conversation, repl), turn, awaited=awaited)
                return self._answer(await repl.arun(prepared, **options) if awaited else repl.run(prepared, **options))
        except (PoolTimeout, WorkerError, ClosedError, TooManySessions) as problem:
            return self._lost(problem)

    async def aresume(self, run_id: str, in_flight: Any = None, *, options: RunOptions) -> Reply:
        """Continue a run of the journal, with the tools that scripts reach here; see `Sandbox.resume`."""
        self._current()

        def make(repl_id: str) -> Repl:
            return self.sandbox.make_repl(options, 30.0, self._shown.routes.hidden, self._explain, repl_id=repl_id)

        return self._answer(await self.sandbox.aresume(run_id, in_flight, make=make))

    def options_for(self, run: KnownRun) -> dict[str, Any]:
        """The options of a Repl in which a recorded run goes on: one of a conversation has the tools of its scripts."""
        if CONVERSATION not in run.labels:
            return {}
        return {"toolbox": self._shown.routes.hidden, "before_write": self._explain}

    def conversation(self, name: str = "", **options: Unpack[RunOptions]) -> Conversation:
        """One conversation whose calls all have these options, such as the `context` and `labels` of a user."""
        return Conversation(self, name, options)

    def session(self, conversation: str) -> AbstractContextManager[Repl]:
        """The Repl of a conversation, which cannot end to make room until the block is left."""
        self._current()
        return self.sessions.use(conversation + self._suffix, partial(self._new_repl, conversation))

    def repl(self, conversation: str = "") -> Repl:
        """The Repl of a conversation."""
        self._current()
        return self.sessions.open(conversation + self._suffix, partial(self._new_repl, conversation))

    @property
    def conversations(self) -> tuple[str, ...]:
        """The conversations that have script state, the most recently used last."""
        return tuple(dict.fromkeys(name.partition(self._mark)[0] for name in self.sessions.names()))

    def end(self, conversation: str = "") -> bool:
        """End a conversation: its state is gone. Whether there was one."""
        names = [name for name in self.sessions.names() if name.partition(self._mark)[0] == conversation]
        ended = [self.sessions.end(name) for name in names]
        if conversation == "" and self._given is not None and self._suffix == "" and any(ended):
            self._given.reset()
        return any(ended)

    def close(self) -> None:
        """End every conversation; a Sandbox that was given stays open."""
        self._ended.set()
        self.sessions.end_all()
        if self._own_sandbox is not None:
            self._own_sandbox.close()

    # Inside

    def _direct_step(self, tool: Tool, given: dict[str, Any], options: RunOptions) -> Run | DirectStep:
        """A direct call of a client-side tool: what waits for its answer, or the record of an invalid call."""
        try:
            bound = tool.bind(given, is_json_call=True)
        except ArgumentError:
            return self.sandbox.call(tool.path, given, toolbox=self._shown.toolbox, **options)
        call = ToolCall(
            tool=tool.path,
            definition=tool,
            arguments=bound,
            index=1,
            run_id="",
            repl_id="",
            id=1,
            language="direct",
            context={**self.sandbox.context, **(options.get("context") or {})},
            labels=options.get("labels") or {},
        )
        finish: Any = partial(self.sandbox.call, tool.path, given, toolbox=self._shown.toolbox, **options)
        return DirectStep(call, lambda answer: finish(answer=answer))

    def _place(self, conversation: str, paused: Repl) -> Place:
        """What lets a script that waited continue: a turn in its conversation, if that still has the same Repl."""
        key = conversation + self._suffix

        async def enter(turn: ExitStack, *, awaited: bool) -> Reply | None:
            await take_turn(self._turns(paused), turn, awaited=awaited)
            if self._ended.is_set():
                raise ClosedError("this CodeMode is closed")
            if self.sessions.get(key) is not paused:
                return Reply(_ENDED, True)
            turn.enter_context(self.sessions.use(key, partial(self._new_repl, conversation)))
            return None

        return enter

    def _turns(self, repl: Repl) -> Turns:
        """The turns of a conversation's scripts that may wait for the client: a Repl refuses others while one waits."""
        return self._all_turns.setdefault(repl, Turns(os.getpid()))

    def _new_repl(self, conversation: str) -> Repl:
        if self._given is not None:
            return self._given if conversation == "" and self._suffix == "" else self._given.twin()
        return self.sandbox.repl(toolbox=self._shown.routes.hidden, before_write=self._explain)

    def _explain(self, run: Run) -> Run:
        hint = run.error and misdirection(run.error, run.source, self._shown.only_direct())
        return replace(run, error=run.error.with_(hint=hint)) if run.error and hint else run

    def _current(self) -> View:
        """What is shown now."""
        if self._ended.is_set():
            raise ClosedError("this CodeMode is closed")
        return self._shown.current()

    def _lost(self, problem: Exception) -> Reply:
        """The answer where no run came about."""
        if isinstance(problem, ClosedError):
            if self._ended.is_set() or self.sandbox.closed:
                raise problem
            return Reply(_ENDED, True)
        return Reply(f"error: {problem}", True)

    def _answer(self, run: Run) -> Reply:
        text = run.for_model(self.settings.max_chars)
        if self.settings.reply == "json":
            text = json_reply(run, text, self.settings.max_chars)
        return Reply(text, not run.ok, run)


class Conversation:
    """Answers the calls of one conversation, each with the options that it was made with.

    Make it with `CodeMode.conversation()`. Options of one call come over them. It holds no state of its own: the
    CodeMode keeps the Repl under the conversation's name.
    """

    def __init__(self, mode: CodeMode, name: str, options: RunOptions) -> None:
        self.name = name
        self._mode = mode
        self._options = merged({}, options)

    def definitions(self, form: Format = "openai") -> list[dict[str, Any]]:
        """Like `CodeMode.definitions`, with the labels of this conversation."""
        return self._mode.definitions(form, labels=self._options.get("labels"))

    def handle(self, name: str, arguments: Any, **options: Unpack[RunOptions]) -> str:
        """Like `CodeMode.handle`."""
        return self._mode.handle(name, arguments, conversation=self.name, **merged(self._options, options))

    async def ahandle(self, name: str, arguments: Any, **options: Unpack[RunOptions]) -> str:
        """The same, awaited."""
        return await self._mode.ahandle(name, arguments, conversation=self.name, **merged(self._options, options))

    def reply(self, name: str, arguments: Any, *, pause: bool | None = None, **options: Unpack[RunOptions]) -> Reply:
        """Like `CodeMode.reply`."""
        given = merged(self._options, options)
        return self._mode.reply(name, arguments, conversation=self.name, pause=pause, **given)

    async def areply(
        self, name: str, arguments: Any, *, pause: bool | None = None, **options: Unpack[RunOptions]
    ) -> Reply:
        """The same, awaited."""
        given = merged(self._options, options)
        return await self._mode.areply(name, arguments, conversation=self.name, pause=pause, **given)

    def end(self) -> bool:
        """End it: its state is gone. Whether there was any."""
        return self._mode.end(self.name)
