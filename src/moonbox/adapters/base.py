"""What all adapters share: the code mode behind them, an agent's own tools, conversations, and answers to calls."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import importlib
import json
import uuid
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from moonbox.closing import Closing, during
from moonbox.codemode.mode import CodeMode, Reply
from moonbox.codemode.sessions import Sessions
from moonbox.compact import json_in
from moonbox.errors import MissingExtra, ToolDefinitionError, ToolError, UsageError
from moonbox.sandbox.sandbox import Sandbox
from moonbox.tools.tool import Tool, fingerprint

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from types import ModuleType

    from moonbox.media import Media

ContextT = TypeVar("ContextT")
ToolT = TypeVar("ToolT")
_MOST_SETS = 50
_running: ContextVar[Mapping[str, Tool]] = ContextVar("moonbox_agent_tools")
"""The agent's own tools in the call that runs the script: another agent, or another request, may have others."""
_MOST_THREADS = 8
_CUT = (
    "error: your answer ended at its token limit in the middle of this call, so it was not run; "
    "write a shorter script, or several smaller ones"
)


class Adapter(Closing):
    """Code mode for one provider or framework. Use it as a context manager, or call `close`.

    `source` is a CodeMode, a Sandbox, or what `Sandbox(tools=…)` takes: functions, Tools, Toolboxes. With a Sandbox or
    with tools, `settings` are those of CodeMode (keep_visible, mode, full_schemas, …). What the adapter made itself is
    closed with it; what it was given stays open.
    """

    def __init__(self, source: Any = (), **settings: Any) -> None:
        self._own = contextlib.ExitStack()
        if isinstance(source, CodeMode):
            if settings:
                raise UsageError(f"{next(iter(settings))} is a setting of the CodeMode; pass it there")
            self.mode = source
            return
        with contextlib.ExitStack() as own:
            box = source if isinstance(source, Sandbox) else own.enter_context(Sandbox(source))
            self.mode = own.enter_context(CodeMode(box, can_pause=False, **settings))
            self._own = own.pop_all()

    @property
    def system_prompt(self) -> str:
        """An addition to the system prompt, at most 500 bytes; empty when there is no code tool."""
        return self.mode.system_prompt

    def close(self) -> None:
        """End what the adapter made itself."""
        self._own.close()

    @contextlib.contextmanager
    def conversation_key(self, conversation: str | None, kind: str = "call") -> Iterator[str]:
        """The name of a conversation; a new one, ended afterwards, where there is none."""
        key = new_conversation(kind) if conversation is None else conversation
        try:
            yield key
        finally:
            if conversation is None:
                self.mode.end(key)


class AgentAdapter(Adapter):
    """Code mode for agents with tools of their own: one CodeMode for each set of them, made at its first use.

    `leave_direct` are names, or patterns such as `send_*`, of the agent's own tools that code mode leaves as they are.
    """

    def __init__(self, source: Any = (), *, leave_direct: Collection[str] = (), **settings: Any) -> None:
        super().__init__(source, **settings)
        self._leave_direct = (leave_direct,) if isinstance(leave_direct, str) else tuple(leave_direct)
        self._modes: Sessions[CodeMode] = Sessions(lambda _: None, most=_MOST_SETS, idle_seconds=None)

    @property
    def alone(self) -> Shown:
        """What a model is shown where the agent's own tools are left as they are."""
        return Shown(self.mode, {})

    def shown_with(self, tools: Iterable[Any], convert: Callable[[Any], Tool | None]) -> Shown:
        """What the model of an agent with these tools is shown.

        `convert` makes a Tool of the framework's own; a tool for which it gives None, or raises ToolDefinitionError,
        stays the agent's, and so does one whose name is taken.
        """
        taken = {self.mode.tool_name, *self.mode.sandbox.toolbox.paths()}
        own: dict[str, Tool] = {}
        for item in tools:
            with contextlib.suppress(ToolDefinitionError):
                tool = convert(item)
                if tool is None or tool.path in taken:
                    continue
                if not any(fnmatchcase(tool.path, pattern) for pattern in self._leave_direct):
                    own[tool.path] = tool
        if not own:
            return self.alone
        key = json.dumps([_described(tool) for tool in own.values()])
        return Shown(self._modes.open(key, lambda: self.mode.with_tools(list(map(_routed, own.values())))), own)

    def mode_that_hides(self, name: str) -> CodeMode:
        """A CodeMode in which only scripts reach a tool of this name, for the answer to a direct call of it."""
        modes = [mode for mode in self._modes.values() if any(tool.path == name for tool in mode.hidden_tools)]
        return modes[-1] if modes else self.mode


class FrameworkAdapter(AgentAdapter, Generic[ContextT]):
    """Code mode for one agent framework, whose own loop calls the tools.

    `conversation` is a function from what the framework tells its tools about a call to the name of the conversation
    whose script state is meant; without it, or where it gives None, the framework's own notion counts.
    `leave_direct` is as with AgentAdapter.
    """

    def __init__(
        self,
        source: Any = (),
        *,
        conversation: Callable[[ContextT], str | None] | None = None,
        leave_direct: Collection[str] = (),
        **settings: Any,
    ) -> None:
        if conversation is not None and not callable(conversation):
            raise UsageError(f"conversation must be a function that returns a name, not {conversation!r}")
        super().__init__(source, leave_direct=leave_direct, **settings)
        self._conversation = conversation

    def _named(self, context: ContextT) -> str | None:
        """The conversation's name by the user's own function."""
        if self._conversation is None:
            return None
        name = self._conversation(context)
        if name is not None and not isinstance(name, str):
            raise UsageError(f"conversation must return a name or None, not {name!r}")
        return name

    def answer(self, shown: Shown, name: str, arguments: Any, conversation: str | None) -> Reply:
        """The answer to a call; without a conversation its script state ends with it."""
        with self.conversation_key(conversation) as key, shown.running() as mode:
            return mode.reply(name, arguments, conversation=key)

    async def aanswer(
        self, shown: Shown, name: str, arguments: Any, conversation: str | None, *, cut: bool = False
    ) -> Reply:
        """The same, awaited."""
        with self.conversation_key(conversation) as key, shown.running() as mode:
            return await aanswer(mode, ModelCall("", name, arguments, cut), key)


class ToolsAdapter(FrameworkAdapter[ContextT], Generic[ContextT, ToolT]):
    """Code mode for a framework whose agents are given tools."""

    @property
    def tools(self) -> list[ToolT]:
        """The code tool and the direct tools."""
        return self.tools_of(self.alone)

    def hiding(self, tools: Iterable[Any]) -> list[Any]:
        """The same for an agent with tools of its own: scripts reach these, and what they cannot reach follows."""
        given = list(tools)
        shown = self.shown(given)
        return [*self.tools_of(shown), *(tool for tool in given if self.name_of(tool) not in shown.hidden)]

    def shown(self, tools: Iterable[Any]) -> Shown:
        """What the model of an agent with these tools is shown."""
        return self.shown_with(tools, self._converted)

    def tools_of(self, shown: Shown) -> list[ToolT]:
        return [self._tool(function, shown) for function in shown.functions()]

    def name_of(self, tool: Any) -> str:
        """The name of an agent's tool; empty for one of the provider's own, which may be a dict."""
        return str(getattr(tool, "name", ""))

    def _tool(self, function: dict[str, Any], shown: Shown) -> ToolT:
        """One tool of code mode in the framework's own type."""
        raise NotImplementedError

    def _converted(self, tool: Any) -> Tool | None:
        """A tool of the agent for scripts; None for one that must stay the agent's."""
        raise NotImplementedError


@dataclass(frozen=True)
class Shown:
    """A CodeMode with an agent's own tools, and these tools."""

    mode: CodeMode
    own: Mapping[str, Tool]

    @property
    def hidden(self) -> frozenset[str]:
        """The names of the agent's own tools that only scripts call."""
        reached = {tool.path for tool in self.mode.hidden_tools} - {tool.path for tool in self.mode.direct_tools}
        return frozenset(self.own.keys() & reached)

    def functions(self) -> list[dict[str, Any]]:
        """The name, description and parameters of each tool besides the agent's own, as every provider accepts them."""
        functions = [definition["function"] for definition in self.mode.definitions("openai")]
        return [function for function in functions if function["name"] not in self.own]

    @contextlib.contextmanager
    def running(self) -> Iterator[CodeMode]:
        """Around the answer to a call: its script calls these very tools."""
        with during(_running, self.own):
            yield self.mode


def _described(tool: Tool) -> list[Any]:
    parts = {name: part for name, part in fingerprint(tool).items() if name != "code"}
    return [tool.path, parts, tool.policy, tool.is_async, tool.timeout, tool.max_concurrency]


def _routed(tool: Tool) -> Tool:
    """The tool with a function that calls the agent's tool of this name in the call that is under way."""

    def call(*args: Any, **kwargs: Any) -> Any:
        current = _running.get({}).get(tool.path)
        if current is None:
            raise ToolError(f"the agent does not have the tool '{tool.path}' now", code="unknown_tool", tool=tool.path)
        return current.call(*args, **kwargs)

    async def acall(*args: Any, **kwargs: Any) -> Any:
        return await call(*args, **kwargs)

    return tool.with_(call=acall if tool.is_async else call)


def new_conversation(kind: str) -> str:
    """A unique name."""
    return f"{kind}-{uuid.uuid4().hex}"


def as_messages(messages: Any) -> list[Any]:
    """The messages to begin with; a text is what the user asks."""
    return [{"role": "user", "content": messages}] if isinstance(messages, str) else list(messages)


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One call that the model made, out of whichever object it came in."""

    id: str
    name: str
    arguments: Any
    """A dict, or the JSON text that should be one."""
    cut: bool = False
    """The model's answer ended at its token limit, perhaps inside this call."""
    origin: Any = None
    """The provider's own object, for what its result must repeat."""


def is_json_object(text: str) -> bool:
    """Whether any server reads the arguments of an earlier call: many refuse a history that is not JSON."""
    return isinstance(json_in(text), dict)


def cut_off(calls: Sequence[ModelCall | None], cut: bool) -> list[ModelCall]:
    """The calls among the parts of an answer (None is any other part); the last part was cut off if the answer was."""
    read = [call for call in calls if call is not None]
    return [*read[:-1], replace(read[-1], cut=True)] if cut and calls and calls[-1] is not None else read


def answer(mode: CodeMode, call: ModelCall, conversation: str) -> Reply:
    """The reply to one of the model's calls."""
    return Reply(_CUT, True) if call.cut else mode.reply(call.name, call.arguments, conversation=conversation)


async def aanswer(mode: CodeMode, call: ModelCall, conversation: str) -> Reply:
    """The same, awaited."""
    return Reply(_CUT, True) if call.cut else await mode.areply(call.name, call.arguments, conversation=conversation)


def answer_all(mode: CodeMode, calls: Sequence[ModelCall], conversation: str) -> list[Reply]:
    """The replies to calls of one answer, in order: scripts one after another, other tools at the same time."""
    if len(calls) == 1:
        return [answer(mode, calls[0], conversation)]
    with ThreadPoolExecutor(_MOST_THREADS, "moonbox-calls") as threads:

        def begun(call: ModelCall) -> Future[Reply] | None:
            if call.name == mode.tool_name:
                return None
            return threads.submit(contextvars.copy_context().run, answer, mode, call, conversation)

        waiting = [begun(call) for call in calls]
        scripts = iter([answer(mode, call, conversation) for call in calls if call.name == mode.tool_name])
        return [next(scripts) if future is None else future.result() for future in waiting]


async def aanswer_all(mode: CodeMode, calls: Sequence[ModelCall], conversation: str) -> list[Reply]:
    """The same, awaited."""
    scripts = asyncio.Lock()  # first come, first served

    async def one(call: ModelCall) -> Reply:
        async with scripts if call.name == mode.tool_name else contextlib.nullcontext():
            return await aanswer(mode, call, conversation)

    return await asyncio.gather(*map(one, calls))


@dataclass(frozen=True, slots=True)
class Tokens:
    """What the model read and wrote in all its turns, as its provider counted; 0 where it does not say."""

    input: int = 0
    output: int = 0

    @property
    def total(self) -> int:
        return self.input + self.output

    @classmethod
    def of(cls, response: Any) -> Tokens:
        """Of one answer, in any of the providers' forms."""
        usage = _part(response, "usage") or _part(response, "usage_metadata") or _part(response, "usageMetadata")
        return cls(_sum(usage, _READ), _sum(usage, _WRITTEN))

    def __add__(self, other: Tokens) -> Tokens:
        return Tokens(self.input + other.input, self.output + other.output)


# Each provider uses names of its own. Anthropic counts what it reads from its cache beside the other input.
_READ = (
    *("prompt_tokens", "input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"),
    *("prompt_token_count", "promptTokenCount"),
)
_WRITTEN = (
    *("completion_tokens", "output_tokens", "candidates_token_count", "thoughts_token_count"),
    *("candidatesTokenCount", "thoughtsTokenCount"),
)


def _part(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else getattr(value, name, None)


def _sum(usage: Any, names: tuple[str, ...]) -> int:
    counts = [_part(usage, name) for name in names]
    return sum(count for count in counts if isinstance(count, int) and not isinstance(count, bool))


def media_title(media: Sequence[Media]) -> str:
    """What is said before media that follow the results of calls."""
    return f"From the tools: {', '.join(medium.name for medium in media)}"


def needed(module: str, *, extra: str, purpose: str, package: str | None = None) -> ModuleType:
    """The module, or MissingExtra with the command that installs it.

    `package` is the name on PyPI, where it differs; `purpose` is what cannot be done without it.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as problem:
        missing = problem.name or ""
        if module != missing and not module.startswith(missing + "."):
            raise  # the package is there, but broken
        raise MissingExtra(package or module.partition(".")[0], extra, purpose) from None


@contextlib.contextmanager
def imported_from(package: str, *, extra: str) -> Iterator[None]:
    """Around an adapter's imports of its framework: a missing package answers with the command that installs it."""
    try:
        yield
    except ModuleNotFoundError as problem:
        if isinstance(problem, MissingExtra) or (problem.name or "").startswith("moonbox"):
            raise
        raise MissingExtra(package, extra, f"moonbox.adapters.{extra.replace('-', '_')}") from problem
