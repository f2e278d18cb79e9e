"""What the adapters of agent frameworks share: the conversation of a call, and a plain word about a missing package."""

from __future__ import annotations

import contextlib
import uuid
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from moonbox.adapters.base import Adapter
from moonbox.errors import MissingExtra, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from moonbox.codemode.mode import Reply

__all__ = ["FrameworkAdapter", "imported_from"]

ContextT = TypeVar("ContextT")


class FrameworkAdapter(Adapter, Generic[ContextT]):
    """Code mode for one agent framework, whose own loop calls the tools.

    `conversation` is a function from what the framework tells its tools about a call to the name of the conversation
    whose script state is meant; without it, or where it gives None, the framework's own notion counts.
    """

    def __init__(
        self, source: Any = (), *, conversation: Callable[[ContextT], str | None] | None = None, **settings: Any
    ) -> None:
        if conversation is not None and not callable(conversation):
            raise UsageError(f"conversation must be a function that names one, not {conversation!r}")
        super().__init__(source, **settings)
        self._conversation = conversation

    def _functions(self) -> list[dict[str, Any]]:
        """The name, description and parameters of each tool, as every provider accepts them."""
        return [definition["function"] for definition in self.mode.definitions("openai")]

    def _named(self, context: ContextT) -> str | None:
        """The conversation's name by the user's own function."""
        if self._conversation is None:
            return None
        name = self._conversation(context)
        if name is not None and not isinstance(name, str):
            raise UsageError(f"conversation must give a name or None, not {name!r}")
        return name

    def _answer(self, name: str, arguments: Any, conversation: str | None) -> Reply:
        """The answer to a call; without a conversation its script state ends with it."""
        with self._kept(conversation) as key:
            return self.mode.reply(name, arguments, conversation=key)

    async def _aanswer(self, name: str, arguments: Any, conversation: str | None) -> Reply:
        """The same, awaited."""
        with self._kept(conversation) as key:
            return await self.mode.areply(name, arguments, conversation=key)

    @contextlib.contextmanager
    def _kept(self, conversation: str | None) -> Iterator[str]:
        if conversation is not None:
            yield conversation
            return
        key = new_conversation("call")
        try:
            yield key
        finally:
            self.mode.end(key)


def new_conversation(kind: str) -> str:
    """A name that nobody else has."""
    return f"{kind}-{uuid.uuid4().hex}"


@contextlib.contextmanager
def imported_from(package: str, *, extra: str) -> Iterator[None]:
    """Around an adapter's imports of its framework: a missing package answers with the command that installs it."""
    try:
        yield
    except ModuleNotFoundError as problem:
        if isinstance(problem, MissingExtra) or (problem.name or "").startswith("moonbox"):
            raise
        raise MissingExtra(package, extra, f"moonbox.adapters.{extra.replace('-', '_')}") from problem
