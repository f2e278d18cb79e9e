"""What people and middleware see of a call, and what they may decide."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from moonbox.errors import UsageError
from moonbox.values import to_jsonable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from moonbox.tools.tool import Tool


class Decision(Struct, frozen=True):
    """A person's word on a call."""

    kind: Literal["allow", "always", "edit", "deny"]
    reason: str = ""
    """Why. The script gets it if the call is refused."""
    arguments: Mapping[str, Any] | None = None
    by: str = ""
    """Who decided, for the trail."""

    def __post_init__(self) -> None:
        for name in ("reason", "by"):
            if not isinstance(getattr(self, name), str):
                raise UsageError(f"`{name}` of a Decision must be a string, not {getattr(self, name)!r}")

    def to_dict(self) -> dict[str, Any]:
        """For a journal."""
        given = {} if self.arguments is None else {"arguments": to_jsonable(dict(self.arguments))}
        return {"kind": self.kind, "reason": self.reason, "by": self.by, **given}

    @classmethod
    def of(cls, answer: Any) -> Decision:
        """Understand what an approve callback returned."""
        if isinstance(answer, Decision):
            return answer
        if answer is True or answer == "allow":
            return cls("allow")
        if answer is False or answer is None or answer == "deny":
            return cls("deny")
        if answer == "always":
            return cls("always")
        raise UsageError(
            f"approve must return True, False, 'allow', 'deny', 'always' or one of call.allow(), call.deny(reason), "
            f"call.always(), call.edit(arguments); not {answer!r}"
        )


class Answer(Struct, frozen=True):
    """What a call is answered with instead of running its tool."""

    kind: Literal["value", "error", "run"]
    result: Any = None
    message: str = ""
    code: str = "tool_error"
    retryable: bool = False
    data: Any = None

    @classmethod
    def value(cls, result: Any) -> Answer:
        """Answer with this result, as if the tool had returned it."""
        return cls("value", result)

    @classmethod
    def error(cls, message: str, *, code: str = "tool_error", retryable: bool = False, data: Any = None) -> Answer:
        """Answer with a failure, as if the tool had raised it."""
        return cls("error", message=message, code=code, retryable=retryable, data=data)

    @classmethod
    def run(cls) -> Answer:
        """Let moonbox run the tool itself."""
        return cls("run")


class ToolCall(Struct, frozen=True, kw_only=True):
    """A call as middleware, approve callbacks and step-by-step callers see it."""

    tool: str
    """The path of the tool, as in `Call.tool`, or the name of a function added with `define`."""
    definition: Tool | None
    """The tool itself; None for a function."""
    arguments: Mapping[str, Any]
    index: int
    run_id: str
    repl_id: str
    result: Any = None
    """Only for `after`."""
    id: int = 0
    """How step-by-step callers name it in their answers."""
    source: str = ""
    """The script that makes the call; empty for a direct call."""
    language: str = ""
    changed: tuple[str, ...] = ()
    """For `approve`: the parts of the tool's definition that changed since the person said "always" about it."""
    context: Mapping[str, Any] = {}
    """What the tool finds as `Context.extra`."""
    labels: Mapping[str, str] = {}
    """The labels of the run."""
    question: str = ""
    """For `approve`: the id under which the journal keeps the question; empty without a journal."""

    def with_arguments(self, arguments: Mapping[str, Any]) -> ToolCall:
        """From `before`: go on with these arguments (they are validated again)."""
        return replace(self, arguments=dict(arguments))

    def with_result(self, result: Any) -> ToolCall:
        """From `after`: give the script this instead."""
        return replace(self, result=result)

    def answer(self, result: Any) -> Answer:
        """From `before`: give the script this and do not run the tool."""
        return Answer.value(result)

    def refuse(self, reason: str) -> Decision:
        """From `before`: do not run the tool; the script sees the reason."""
        return Decision("deny", reason)

    def allow(self, *, by: str = "", reason: str = "") -> Decision:
        """Let the call go on. `by` and `reason` are for the trail: who decided, and why."""
        return Decision("allow", reason, by=by)

    def always(self, *, by: str = "", reason: str = "") -> Decision:
        """Allow this call, and every later call of the same tool in this Repl, as long as its definition stays."""
        return Decision("always", reason, by=by)

    def edit(self, arguments: Mapping[str, Any], *, by: str = "", reason: str = "") -> Decision:
        """Allow it with other arguments."""
        return Decision("edit", reason, dict(arguments), by)

    def deny(self, reason: str = "", *, by: str = "") -> Decision:
        """Refuse the call; the script gets the reason."""
        return Decision("deny", reason, by=by)


class Middleware(Struct, frozen=True):
    """Callables around every tool call, sync or async."""

    before: Callable[[ToolCall], Any | Awaitable[Any]] | None = None
    after: Callable[[ToolCall], Any | Awaitable[Any]] | None = None
