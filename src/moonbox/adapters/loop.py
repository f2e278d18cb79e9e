"""The loop of asking a model and answering its calls, written once for every provider, and how it ended.

`Dialect` has one small method for each difference between providers; `ModelAdapter` is the loop on top of them.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, cast

from moonbox.adapters.base import Adapter, ModelCall, Tokens, aanswer, aanswer_all, answer, answer_all
from moonbox.codemode.definitions import portable_value
from moonbox.errors import UsageError
from moonbox.runs.calls import run_to_end
from moonbox.wording import counted

if TYPE_CHECKING:
    from moonbox.codemode.mode import Reply

__all__ = ["Collector", "Dialect", "ModelAdapter", "Outcome", "Tokens"]

CallT = TypeVar("CallT")
MessageT = TypeVar("MessageT")
ResponseT = TypeVar("ResponseT")
ResultT = TypeVar("ResultT")
ToolT = TypeVar("ToolT")


class Collector(Protocol):
    """Puts a streamed answer together."""

    def add(self, chunk: Any) -> str:
        """Take one chunk; the text that it adds, for whoever shows the answer as it comes."""

    def whole(self) -> Any:
        """The answer as if it had not been streamed."""


class Dialect(Adapter, ABC, Generic[CallT, ResultT, ResponseT, MessageT, ToolT]):
    """Tools, calls, results, answers and messages in a provider's own types."""

    messages_key = "messages"
    """The part of a request that has the messages."""
    endpoint: str
    """The client's method that sends a request."""

    @property
    @abstractmethod
    def tools(self) -> list[ToolT]:
        """The code tool and the direct tools, in the provider's own type."""

    @abstractmethod
    def read_call(self, call: Any) -> ModelCall:
        """One call, from the provider's own object."""

    @abstractmethod
    def read_calls(self, response: Any) -> list[ModelCall]:
        """Every call in an answer."""

    @abstractmethod
    def to_result(self, call: ModelCall, reply: Reply) -> ResultT:
        """The provider's own object for the result of a call."""

    @abstractmethod
    def assistant_messages(self, response: Any) -> list[MessageT]:
        """The model's answer as messages of the conversation."""

    def result_messages(self, results: list[ResultT]) -> list[MessageT]:
        """Results as messages of the conversation; by default they are messages."""
        return cast("list[MessageT]", results)

    def media_messages(self, replies: Sequence[Reply]) -> list[MessageT]:
        """Images, audio and files of results, where the provider's results have no place for them."""
        return []

    @abstractmethod
    def text_of(self, response: Any) -> str:
        """The text of an answer."""

    @abstractmethod
    def begin(self, messages: Any, system: Any, request: dict[str, Any]) -> tuple[list[MessageT], dict[str, Any]]:
        """The messages to begin with, and the request without them, with the tools. The system prompt and what code
        mode adds to it are in either."""

    def request_for(self, messages: list[MessageT], request: dict[str, Any]) -> dict[str, Any]:
        """The request with the messages."""
        return {**request, self.messages_key: messages}

    @abstractmethod
    def default_client(self, *, awaited: bool) -> Any:
        """A client made from the environment."""

    def send(self, client: Any, request: dict[str, Any], *, awaited: bool, stream: bool) -> Any:
        """Send a request: the answer or the stream, or an awaitable of it."""
        return attrgetter(self.endpoint)(client)(**request, **({"stream": True} if stream else {}))

    @abstractmethod
    def collector(self) -> Collector:
        """For a new streamed answer."""

    def is_over(self, response: Any) -> bool:
        """Whether the model waits for nothing more from us."""
        return not self.read_calls(response)

    def nudge(self, response: Any) -> list[MessageT]:
        """What to say to a model that should have called something and has called nothing."""
        return []


class ModelAdapter(Dialect[CallT, ResultT, ResponseT, MessageT, ToolT]):
    """Tools in the provider's own types, the handler of its calls, and the loop around both.

    A loop of your own needs `tools` and either `turn` (what to add to the messages, nothing when the model is done) or
    `handle`. `run` is that loop. Each has an awaited twin.
    """

    def handle(self, call: CallT, *, conversation: str = "") -> ResultT:
        """The result of one of the model's calls. What the model got wrong is in the result; nothing is raised."""
        read = self.read_call(call)
        return self.to_result(read, answer(self.mode, read, conversation))

    async def ahandle(self, call: CallT, *, conversation: str = "") -> ResultT:
        """The same, awaited."""
        read = self.read_call(call)
        return self.to_result(read, await aanswer(self.mode, read, conversation))

    def handle_all(self, response: ResponseT, *, conversation: str = "") -> list[ResultT]:
        """The results of every call in the model's answer, in order; scripts run one after another, tools together."""
        calls = self.read_calls(response)
        return self._results(calls, answer_all(self.mode, calls, conversation))

    async def ahandle_all(self, response: ResponseT, *, conversation: str = "") -> list[ResultT]:
        """The same, awaited."""
        calls = self.read_calls(response)
        return self._results(calls, await aanswer_all(self.mode, calls, conversation))

    def turn(self, response: ResponseT, *, conversation: str = "") -> list[MessageT]:
        """What to add to the messages: the model's answer and the results of its calls; nothing when it is done."""
        if self.is_over(response):
            return []
        calls = self.read_calls(response)
        return self._turn(response, calls, answer_all(self.mode, calls, conversation))

    async def aturn(self, response: ResponseT, *, conversation: str = "") -> list[MessageT]:
        """The same, awaited."""
        if self.is_over(response):
            return []
        calls = self.read_calls(response)
        return self._turn(response, calls, await aanswer_all(self.mode, calls, conversation))

    def collect(self, stream: Iterable[Any], on_text: Callable[[str], Any] | None = None) -> ResponseT:
        """A streamed answer put together, as if it had not been streamed; `on_text` gets the text as it comes."""
        return run_to_end(self.acollect(_without_waiting(stream), on_text))

    async def acollect(self, stream: AsyncIterable[Any], on_text: Callable[[str], Any] | None = None) -> ResponseT:
        """The same, awaited; `on_text` may be asynchronous."""
        collector = self.collector()
        try:
            async for chunk in stream:
                text = collector.add(chunk)
                if text and on_text is not None:
                    result = on_text(text)
                    if inspect.isawaitable(result):
                        await result
        finally:
            closed = close_connections(stream)
            if inspect.isawaitable(closed):
                await closed
        return collector.whole()  # type: ignore[no-any-return]  # a collector makes its adapter's own response

    def run(
        self,
        messages: str | Sequence[MessageT],
        *,
        model: str = "",
        client: Any = None,
        system: str | None = None,
        max_turns: int = 20,
        conversation: str | None = None,
        on_text: Callable[[str], Any] | None = None,
        **request: Any,
    ) -> Outcome[ResponseT, MessageT]:
        """Ask the model and answer its calls until it is done.

        messages       what the user asks, or the messages so far; they are not changed
        client         the package's own client; by default one made from the environment
        system         your system prompt; what the code tool needs is added to it
        max_turns      how often the model is asked at most
        conversation   whose script state to use and keep; by default a new one, which ends with this call
        on_text        called with the model's text as it comes; the answers are then streamed
        request        anything else for the request; `tools` in it are added to ours
        """
        request = {"model": model, **request} if model else request
        work = self._loop(messages, client, system, max_turns, conversation, on_text, request, awaited=False)
        return run_to_end(work)

    async def arun(
        self,
        messages: str | Sequence[MessageT],
        *,
        model: str = "",
        client: Any = None,
        system: str | None = None,
        max_turns: int = 20,
        conversation: str | None = None,
        on_text: Callable[[str], Any] | None = None,
        **request: Any,
    ) -> Outcome[ResponseT, MessageT]:
        """The same, awaited."""
        request = {"model": model, **request} if model else request
        return await self._loop(messages, client, system, max_turns, conversation, on_text, request, awaited=True)

    def _turn(self, response: Any, calls: Sequence[ModelCall], replies: Sequence[Reply]) -> list[MessageT]:
        """The model's answer for the next request, and what it is told of its calls."""
        # JSON can escape half a character, which no client can send back.
        said = [portable_value(message) for message in self.assistant_messages(response)]
        if not calls:
            return [*said, *self.nudge(response)]
        return [*said, *self.result_messages(self._results(calls, replies)), *self.media_messages(replies)]

    def _with_tools(self, request: dict[str, Any], **more: Any) -> dict[str, Any]:
        """The request with our tools before its own, and with what else is not empty."""
        more["tools"] = [*self.tools, *request.get("tools", ())]
        return {**request, **{key: value for key, value in more.items() if value}}

    def _results(self, calls: Sequence[ModelCall], replies: Sequence[Reply]) -> list[ResultT]:
        return [self.to_result(call, reply) for call, reply in zip(calls, replies, strict=True)]

    async def _loop(
        self,
        messages: Any,
        client: Any,
        system: str | None,
        max_turns: int,
        conversation: str | None,
        on_text: Callable[[str], Any] | None,
        request: dict[str, Any],
        *,
        awaited: bool,
    ) -> Outcome[ResponseT, MessageT]:
        """The loop in both forms; it waits for nothing unless it is `awaited`."""
        if isinstance(max_turns, bool) or not isinstance(max_turns, int) or max_turns < 1:
            raise UsageError(f"max_turns must be a whole number of at least 1, not {max_turns!r}")
        replies: list[Reply] = []
        finished = False
        tokens = Tokens()
        used = self.default_client(awaited=awaited) if client is None else client
        try:
            with self.conversation_key(conversation, "run") as key:
                history, request = self.begin(messages, system, request)
                for _ in range(max_turns):
                    response = await self._ask(used, self.request_for(history, request), on_text, awaited)
                    tokens += Tokens.of(response)
                    finished = self.is_over(response)
                    calls = [] if finished else self.read_calls(response)
                    answers = await aanswer_all(self.mode, calls, key) if awaited else answer_all(self.mode, calls, key)
                    replies += answers
                    history = [*history, *self._turn(response, calls, answers)]
                    if finished:
                        break
        finally:
            closed = close_connections(used) if client is None else None
            if awaited and inspect.isawaitable(closed):
                await closed
        return Outcome(self.text_of(response), response, history, tuple(replies), finished, tokens)

    async def _ask(
        self, client: Any, request: dict[str, Any], on_text: Callable[[str], Any] | None, awaited: bool
    ) -> Any:
        response = self.send(client, request, awaited=awaited, stream=on_text is not None)
        if inspect.isawaitable(response) != awaited:
            close_connections(response)
            name, kind, other = ("arun", "an asynchronous", "run") if awaited else ("run", "a synchronous", "arun")
            raise UsageError(f"{name} needs {kind} client, not {type(client).__name__}; use {other} with this one")
        response = await response if awaited else response
        if on_text is None:
            return response
        return await self.acollect(response, on_text) if awaited else self.collect(response, on_text)


async def _without_waiting(stream: Iterable[Any]) -> AsyncIterator[Any]:
    """A blocking stream as an asynchronous one."""
    try:
        for chunk in stream:
            yield chunk
    finally:
        close_connections(stream)


def close_connections(opened: Any) -> Awaitable[Any] | None:
    """Give up the connections of a client, or of a stream that may not have been read to its end."""
    close = getattr(opened, "aclose", None) or getattr(opened, "close", None)
    return close() if callable(close) else None


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
    tokens: Tokens = field(default_factory=Tokens)
    """What the model read and wrote, over all turns."""

    def __repr__(self) -> str:
        text = self.text if len(self.text) <= 60 else self.text[:59] + "…"
        state = "finished" if self.finished else "not finished"
        failed = sum(reply.is_error for reply in self.replies)
        replies = counted(len(self.replies), "reply", "replies") + (f" ({failed} failed)" if failed else "")
        return f"<Outcome {text!r}, {state}, {replies}, {self.tokens.input:,} + {self.tokens.output:,} tokens>"
