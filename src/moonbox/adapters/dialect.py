"""What each provider says in its own way: one small method for each difference."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from moonbox.adapters.base import Adapter

if TYPE_CHECKING:
    from moonbox.adapters.answering import ModelCall
    from moonbox.codemode.mode import Reply

__all__ = ["CallT", "Collector", "Dialect", "MessageT", "ResponseT", "ResultT", "ToolT"]

CallT = TypeVar("CallT")
ResultT = TypeVar("ResultT")
ResponseT = TypeVar("ResponseT")
MessageT = TypeVar("MessageT")
ToolT = TypeVar("ToolT")


class Collector(Protocol):
    """Puts a streamed answer together."""

    def add(self, chunk: Any) -> str:
        """Take one chunk; the text that it adds, for whoever shows the answer as it comes."""

    def whole(self) -> Any:
        """The answer as if it had not been streamed."""


class Dialect(Adapter, ABC, Generic[CallT, ResultT, ResponseT, MessageT, ToolT]):
    """Tools, calls, results, answers and messages in a provider's own types."""

    @property
    @abstractmethod
    def tools(self) -> list[ToolT]:
        """The code tool and the direct tools, in the provider's own type."""

    @abstractmethod
    def _call(self, call: Any) -> ModelCall:
        """One call, from the provider's own object."""

    @abstractmethod
    def _calls(self, response: Any) -> list[ModelCall]:
        """Every call in an answer."""

    @abstractmethod
    def _result(self, call: ModelCall, reply: Reply) -> ResultT:
        """The provider's own object for the result of a call."""

    @abstractmethod
    def _said(self, response: Any) -> list[MessageT]:
        """The model's answer as messages of the conversation."""

    @abstractmethod
    def _messages(self, results: list[ResultT]) -> list[MessageT]:
        """Results as messages of the conversation."""

    @abstractmethod
    def _text(self, response: Any) -> str:
        """The text of an answer."""

    @abstractmethod
    def _start(self, messages: Any, system: Any, request: dict[str, Any]) -> tuple[list[MessageT], dict[str, Any]]:
        """The messages to begin with, and the request without them, with the tools. The system prompt and what code
        mode adds to it are in either."""

    @abstractmethod
    def _request(self, messages: list[MessageT], request: dict[str, Any]) -> dict[str, Any]:
        """The request with the messages."""

    @abstractmethod
    def _default_client(self, *, awaited: bool) -> Any:
        """A client made from the environment."""

    @abstractmethod
    def _create(self, client: Any, request: dict[str, Any], *, awaited: bool, stream: bool) -> Any:
        """Send a request: the answer or the stream, or an awaitable of it."""

    @abstractmethod
    def _collector(self) -> Collector:
        """For a new streamed answer."""

    def _is_over(self, response: Any) -> bool:
        """Whether the model waits for nothing more from us."""
        return not self._calls(response)

    def _nudge(self, response: Any) -> list[MessageT]:
        """What to say to a model that is not done and has called nothing."""
        return []
