"""Errors of moonbox, split by what the caller should do about them.

MoonboxError
├── UsageError            the call or configuration is wrong: fix it (also a ValueError)
│   ├── ConfigError       a configuration file or mapping is wrong
│   ├── ToolDefinitionError  a tool cannot be made from what was given
│   └── MissingExtra      an optional package is not installed: install it
├── ConversionError       a value cannot cross between host and script
├── ScriptError           a run failed: show it to the author of the script
├── ToolError             a tool failed: raised by tools, seen by scripts
│   ├── ArgumentError     the arguments do not fit the tool's schema
│   └── Denied            a person, a policy or middleware refused the call
├── PoolTimeout           no worker became free in time: wait, or raise max_workers
├── WorkerError           a worker process could not be started, died, or broke the protocol
├── AuditError            the audit trail cannot be written or read: look at its disk and file
├── JournalError          the journal of durable runs cannot be written or read, or another process has taken over
├── Diverged              a replay does not fit its record: the tools, the version or the journal differ
├── InDoubt               a call may have been made before a crash: say what to do about it
└── ClosedError           the Sandbox or Repl is closed
"""

from __future__ import annotations

from typing import Any, Literal, get_args

from msgspec import Struct
from msgspec.structs import asdict

ErrorKind = Literal["syntax", "runtime", "tool", "limit", "denied", "crashed", "cancelled", "check"]
"""What kind of thing ended a run."""
LimitName = Literal["operations", "time", "memory", "calls", "output", "string", "array", "depth", "source"]
"""The limit that was reached."""

ERROR_KINDS: tuple[str, ...] = get_args(ErrorKind)
LIMIT_NAMES: tuple[str, ...] = get_args(LimitName)

_DENIALS = (
    "denied",  # by middleware, a policy, or a tool that raised Denied
    "not_granted",  # by the grants of a tool script
    "approval_denied",  # by a person
    "approval_unavailable",  # because no person could be asked
)


def is_denial(code: object) -> bool:
    """Whether a call's error of this code means that the call is not allowed."""
    return code in _DENIALS


class MoonboxError(Exception):
    """Base of everything that moonbox raises."""


class UsageError(MoonboxError, ValueError):
    """The call is wrong; the message says what is right."""


class ConfigError(UsageError):
    """A configuration file or mapping is wrong."""


class ToolDefinitionError(UsageError):
    """A tool cannot be made from what was given."""


class MissingExtra(UsageError, ImportError):
    """An optional package is missing; the message holds the install command."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        self.package, self.extra = package, extra
        super().__init__(f"{purpose} needs the package {package!r}; install it with: pip install 'moonbox[{extra}]'")


class ConversionError(MoonboxError):
    """A value cannot cross between host and script; the message names its path."""

    def __init__(self, message: str, *, limit: LimitName | None = None) -> None:
        self.limit = limit
        super().__init__(message)


class ToolError(MoonboxError):
    """A tool's failure as the script sees it: `.code .message .tool .retryable .data`, and `.where` of a tool script.

    Raise it inside a tool to choose what the script gets. `detail` stays in the audit trail and never
    reaches the script. `where` is the file and line of a tool script that failed. `retry_after` is how many seconds to
    wait before the tool is tried again, where it is.
    """

    def __init__(
        self,
        message: str,
        *,
        code: str = "tool_error",
        retryable: bool = False,
        data: Any = None,
        tool: str | None = None,
        detail: str | None = None,
        where: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        self.message, self.code, self.retryable, self.data = message, code, retryable, data
        self.tool, self.detail, self.where, self.retry_after = tool, detail, where, retry_after
        super().__init__(message)


class ArgumentError(ToolError):
    """The arguments do not fit the tool's schema; the message lists every problem."""

    def __init__(self, message: str, *, code: str = "invalid", **more: Any) -> None:
        super().__init__(message, code=code, **more)


class Denied(ToolError):
    """A person, a policy or middleware refused the call."""

    def __init__(self, message: str, *, code: str = "denied", **more: Any) -> None:
        super().__init__(message, code=code, **more)


class PoolTimeout(MoonboxError, TimeoutError):
    """No worker became free in time."""


class WorkerError(MoonboxError):
    """A worker process could not be started, died, or broke the protocol."""


class AuditError(MoonboxError):
    """The audit trail cannot be written or read. `run` is the finished Run that could not be written, or None."""

    def __init__(self, message: str, *, run: Any = None) -> None:
        super().__init__(message)
        self.run = run


class JournalError(MoonboxError):
    """The journal cannot be written or read, or another process continues the Repl."""

    def __init__(self, message: str, *, passing: bool = False) -> None:
        super().__init__(message)
        self.passing = passing
        """The database is away or full for the moment: what failed can be tried again."""


class Diverged(MoonboxError):
    """A replay does not fit its record; the message names both sides."""


class InDoubt(MoonboxError):
    """A run cannot be resumed before somebody says what to do about `pending`, calls that may have been made."""

    def __init__(self, message: str, pending: tuple[Any, ...] = ()) -> None:
        self.pending = pending
        super().__init__(message)


class ClosedError(UsageError):
    """The Sandbox or Repl was closed before this call."""


class Frame(Struct, frozen=True):
    """One level of a script's traceback."""

    line: int | None
    function: str
    source: str | None = None
    chunk: str = "script"


class ScriptError(MoonboxError):
    """Why a run failed, in words for the model that must fix the script."""

    kind: ErrorKind
    message: str
    line: int | None = None
    column: int | None = None
    traceback: str = ""
    """The source line with a caret, and the calls that led there."""
    limit: LimitName | None = None
    """Which limit ended the run; None unless `kind` is "limit"."""
    hint: str | None = None
    """What to write instead, where moonbox knows."""
    code: str | None = None
    tool: str | None = None
    retryable: bool = False
    data: Any = None
    frames: tuple[Frame, ...] = ()

    def __init__(self, kind: ErrorKind, message: str, **fields: Any) -> None:
        if unknown := fields.keys() - ScriptError.__annotations__.keys():
            raise TypeError(f"a ScriptError has no {', '.join(sorted(unknown))}")
        self.kind, self.message = kind, message
        vars(self).update(fields)
        super().__init__(message)

    def with_(self, **changes: Any) -> ScriptError:
        """A copy with some fields changed."""
        return ScriptError(**{**self._fields(), **changes})

    def to_dict(self) -> dict[str, Any]:
        return {**self._fields(), "frames": [asdict(frame) for frame in self.frames]}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> ScriptError:
        return cls(**{**data, "frames": tuple(Frame(**frame) for frame in data.get("frames", ()))})

    def _fields(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ScriptError.__annotations__}  # in this order in JSON

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ScriptError) and self._fields() == other._fields()

    __hash__ = MoonboxError.__hash__

    def __str__(self) -> str:
        where = f" (line {self.line})" if self.line is not None else ""
        what = f"{self.kind}: {self.limit}" if self.limit else self.kind
        hint = f"\nhint: {self.hint}" if self.hint else ""
        return f"{what}{where}: {self.message}{hint}"

    def __repr__(self) -> str:
        return f"ScriptError(kind={self.kind!r}, message={self.message!r}, line={self.line!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return (ScriptError.from_dict, (self.to_dict(),))
