"""Events: what a journal holds of a Repl. Its runs, their calls and answers, and their ends, in their order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from msgspec import Struct, msgpack

from moonbox.audit.records import CallError  # noqa: TC001 - the decoder needs it
from moonbox.runs.call_entry import tool_error
from moonbox.runs.decisions import Allowance  # noqa: TC001 - as above
from moonbox.runs.record import ScriptApproval  # noqa: TC001 - as above
from moonbox.values import Packed

if TYPE_CHECKING:
    from moonbox.audit.records import CallStatus
    from moonbox.runs.call_entry import CallResult


class Environment(Struct, tag="environment", frozen=True, kw_only=True):
    """What scripts find from here on. It explains a replay that differs."""

    language: str
    version: str
    tools: dict[str, str]
    """A digest of each tool's definition, by its path."""
    functions: list[str]
    """The names of functions and values that were added with `define`."""
    features: list[str]


class Begin(Struct, tag="begin", frozen=True, kw_only=True):
    """A run begins."""

    run: str
    number: int
    source: str
    inputs: list[tuple[str, Any]]
    limits: dict[str, Any]
    seed: int
    started: float
    labels: dict[str, str] = {}


class Medium(Struct, tag="medium", frozen=True, kw_only=True):
    """An image or a file that the script has a handle of from here on."""

    address: str
    kind: str
    """Its MIME type."""
    name: str
    data: bytes


class CallsAsked(Struct, tag="calls", frozen=True, kw_only=True):
    """The script asks for these calls together: (number, target, arguments)."""

    calls: list[tuple[int, str, list[Any]]]


class RecordedReply(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The answer to one call, as the worker gets it, and what the record of the call says."""

    call: int
    ok: bool
    data: bytes
    """The value, or the error as the script sees it, in MessagePack."""
    status: str = ""
    """Empty for a question about the clock or the documentation, which is no call of the record."""
    error: CallError | None = None
    tool: str = ""
    arguments: Any = None
    approval: str | None = None
    started: float = 0.0
    duration: float = 0.0

    @property
    def result(self) -> CallResult:
        """The result of the call."""
        status = cast("CallStatus", self.status)
        return (status, Packed(self.data), None) if self.error is None else (status, None, tool_error(self.error))


class Answers(Struct, tag="answers", frozen=True, kw_only=True):
    """These answers go to the script together."""

    replies: list[RecordedReply]


class Slept(Struct, tag="slept", frozen=True, kw_only=True):
    """The script waits: its call of `sleep` is answered then."""

    call: int
    until: float


class Patched(Struct, tag="patched", frozen=True, kw_only=True):
    """The run goes on with a corrected script, which does the same as far as the record goes."""

    run: str
    source: str
    skipped: list[int] = []
    """Calls of the record that the corrected script does not make."""
    replies: list[RecordedReply] = []
    """Answers in place of the recorded ones."""


class Approved(Struct, tag="approved", frozen=True, kw_only=True):
    """A person has allowed a call, or decided about the script: from here on its tool may have been invoked."""

    call: int
    """0: the script as a whole."""
    approval: str
    allowance: Allowance | None = None
    """What they allowed besides."""
    script: ScriptApproval | None = None
    """What they said of the script."""


class End(Struct, tag="end", frozen=True, kw_only=True):
    """The run is over."""

    run: str
    outcome: str
    """`ok`, or the kind of its error."""
    limit: str = ""
    digest: bytes = b""
    """Of its values or its error, and of what it printed."""
    at: float = 0.0

    @property
    def is_repeatable(self) -> bool:
        """Whether the run ends in the same way when it runs again: nothing from outside stopped it."""
        return self.outcome not in ("crashed", "cancelled", "interrupted") and self.limit not in ("time", "memory")


class Reset(Struct, tag="reset", frozen=True, kw_only=True):
    """What the scripts had defined is gone: the Repl was reset, or its worker was lost."""


Record = Environment | Begin | Medium | CallsAsked | Answers | Slept | Patched | Approved | End | Reset

encode = msgpack.Encoder().encode
"""For a list of records that are written together."""
decode = msgpack.Decoder(list[Record]).decode
"""The inverse; raises ValueError where they are no records of this version."""
