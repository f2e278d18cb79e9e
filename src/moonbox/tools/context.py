"""What a tool may be told about the call it is answering, and the mark for parameters that the host fills in."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["Context", "Injected"]


def _ignore(message: str) -> None:
    return None


def _never() -> bool:
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The call that a tool is answering. A parameter annotated `Context` receives it and is not in the schema."""

    run_id: str = ""
    repl_id: str = ""
    tool: str = ""
    """The path of the tool that was called."""
    index: int = 0
    """1 for the first call of the run."""
    extra: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    """What the host's author gave to the Sandbox for its tools: a database, a user, a session."""
    progress: Callable[[str], None] = _ignore
    """Tell whoever watches the run how far the tool is."""
    cancelled: Callable[[], bool] = _never
    """Whether the run has ended meanwhile; a long synchronous tool should look now and then and give up."""


@dataclass(frozen=True, slots=True)
class Injected:
    """Marks a parameter as filled in by the host: it never appears in the schema.

    `Annotated[Database, Injected]` takes `context.extra[<parameter name>]`, `Annotated[Database, Injected("db")]`
    takes `context.extra["db"]`, and `Annotated[Context, Injected]` is the same as `Context`.
    """

    key: str | None = None
