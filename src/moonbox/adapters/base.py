"""What all adapters share: the code mode behind them, answers to a model's calls, conversations and their outcomes."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import importlib
import uuid
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from moonbox.adapters.agent_tools import AgentTools, Shown
from moonbox.codemode.mode import CodeMode, Reply
from moonbox.errors import MissingExtra, UsageError
from moonbox.sandbox.sandbox import Sandbox
from moonbox.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence
    from types import ModuleType

    from moonbox.media import Media

ContextT = TypeVar("ContextT")
_MOST_THREADS = 8
_CUT = (
    "error: your answer ended at its token limit in the middle of this call, so it was not run; "
    "write a shorter script, or several smaller ones"
)


class Adapter:
    """Code mode for one provider or framework. Use it as a context manager, or call `close`.

    `source` is a CodeMode, a Sandbox, or what `Sandbox(tools=…)` takes: functions, Tools, Toolboxes. With a Sandbox or
    with tools, `settings` are those of CodeMode (keep_visible, mode, full_schemas, …). What the adapter made itself is
    closed with it; what it was given stays open.
    """

    def __init__(self, source: Any = (), **settings: Any) -> None:
        self._own_box: Sandbox | None = None
        self._own_mode: CodeMode | None = None
        if isinstance(source, CodeMode):
            if settings:
                raise UsageError(f"{next(iter(settings))} is a setting of the CodeMode; pass it there")
            self.mode = source
            return
        if not isinstance(source, Sandbox):
            source = self._own_box = Sandbox(source)
        try:
            self.mode = self._own_mode = CodeMode(source, can_pause=False, **settings)
        except BaseException:
            self.close()
            raise

    @property
    def system_prompt(self) -> str:
        """An addition to the system prompt, at most 500 bytes; empty when there is no code tool."""
        return self.mode.system_prompt

    def close(self) -> None:
        """End what the adapter made itself."""
        if self._own_mode is not None:
            self._own_mode.close()
        if self._own_box is not None:
            self._own_box.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    @contextlib.contextmanager
    def conversation_key(self, conversation: str | None, kind: str = "call") -> Iterator[str]:
        """The name of a conversation; a new one, ended afterwards, where there is none."""
        key = new_conversation(kind) if conversation is None else conversation
        try:
            yield key
        finally:
            if conversation is None:
                self.mode.end(key)


class FrameworkAdapter(Adapter, Generic[ContextT]):
    """Code mode for one agent framework, whose own loop calls the tools.

    `conversation` is a function from what the framework tells its tools about a call to the name of the conversation
    whose script state is meant; without it, or where it gives None, the framework's own notion counts.
    `leave_direct` are names, or patterns such as `send_*`, of the agent's own tools that code mode leaves as they are.
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
        super().__init__(source, **settings)
        self._conversation = conversation
        self.agent_tools = AgentTools(self.mode, leave_direct)

    @property
    def alone(self) -> Shown:
        """What a model is shown where the agent's own tools are left as they are."""
        return Shown(self.mode, {})

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


def new_conversation(kind: str) -> str:
    """A unique name."""
    return f"{kind}-{uuid.uuid4().hex}"


def as_messages(messages: Any) -> list[Any]:
    """The messages to begin with; a text is what the user asks."""
    return [{"role": "user", "content": messages}] if isinstance(messages, str) else list(messages)


# Answers to calls


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


def cut_off(calls: list[ModelCall], cut: bool) -> list[ModelCall]:
    """The calls of an answer, of which the last was cut off if the answer was."""
    return [*calls[:-1], replace(calls[-1], cut=True)] if calls and cut else calls


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


# Media


def media_title(media: Sequence[Media]) -> str:
    """What is said before media that follow the results of calls."""
    return f"From the tools: {', '.join(medium.name for medium in media)}"


# Packages that may be missing


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


ResponseT = TypeVar("ResponseT")
MessageT = TypeVar("MessageT")


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


@dataclass(frozen=True, slots=True, repr=False)
class Outcome(Generic[ResponseT, MessageT]):
    """How a conversation with the model ended."""

    text: str
    """What the model said last."""
    response: ResponseT
    """Its last answer."""
    messages: list[MessageT]
    """The whole conversation, ready to be continued."""
    replies: tuple[Reply, ...]
    """Every answer to a call, with the Run behind it."""
    finished: bool
    """False when `max_turns` were used up while the model still called tools."""
    tokens: Tokens = Tokens()
    """What the model read and wrote, over all turns."""

    def __repr__(self) -> str:
        text = self.text if len(self.text) <= 60 else self.text[:59] + "…"
        state = "finished" if self.finished else "not finished"
        failed = sum(reply.is_error for reply in self.replies)
        replies = counted(len(self.replies), "reply", "replies") + (f" ({failed} failed)" if failed else "")
        return f"<Outcome {text!r}, {state}, {replies}, {self.tokens.input:,} + {self.tokens.output:,} tokens>"
