"""Records of tool calls: frozen values that go to JSON and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, get_args

from moonbox.dataclass import dataclass, fields
from moonbox.values import from_jsonable, to_jsonable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["CALL_STATUSES", "Call", "CallError", "CallStatus", "call_to_dict", "known_fields"]

CallStatus = Literal["ok", "error", "denied", "timeout", "cancelled", "in_flight"]
CALL_STATUSES: tuple[str, ...] = get_args(CallStatus)


@dataclass(frozen=True, slots=True)
class CallError:
    """Why a call failed. `detail` (the host's traceback) is only for the trail: scripts never see it."""

    code: str
    message: str
    retryable: bool = False
    data: Any = None
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call inside a run."""

    index: int
    """1 for the first call of the run; calls of one batch follow each other."""
    tool: str
    arguments: Any
    status: CallStatus = "ok"
    result: Any = None
    error: CallError | None = None
    started: float = 0.0
    """Seconds since the epoch at which the host received the call."""
    queued: float = 0.0
    """Seconds it waited (for a free slot, for approval) before the tool itself began."""
    duration: float = 0.0
    """Seconds inside the tool."""
    bytes_in: int = 0
    """Size of the arguments as JSON."""
    bytes_out: int = 0
    """Size of the result as JSON."""
    approval: str | None = None
    """What the person decided: "allowed", "always", "edited", "denied"; None when nobody was asked."""
    retry_of: int | None = None
    """The index of the earlier failed call of this run with the same tool and arguments."""
    batch: int = 0
    """Calls that were sent to the host together share this number."""

    @property
    def ok(self) -> bool:
        return self.status == "ok"

    def to_dict(self) -> dict[str, Any]:
        return call_to_dict(self, to_jsonable)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Call:
        known = known_fields(cls, data)
        for name in ("arguments", "result"):
            known[name] = from_jsonable(known.get(name))
        if (error := known.get("error")) is not None:
            known["error"] = CallError(**{**known_fields(CallError, error), "data": from_jsonable(error.get("data"))})
        return cls(**known)


def call_to_dict(call: Call, lower: Callable[[Any], Any]) -> dict[str, Any]:
    """A call as JSON data; `lower` makes its values into such."""
    # Spelled out, not looped over fields(): a durable sink pays this for every call of every run.
    error = call.error
    return {
        "index": call.index,
        "tool": call.tool,
        "arguments": lower(call.arguments),
        "status": call.status,
        "ok": call.ok,
        "result": lower(call.result),
        "error": None
        if error is None
        else {
            "code": error.code,
            "message": error.message,
            "retryable": error.retryable,
            "data": lower(error.data),
            "detail": error.detail,
        },
        "started": call.started,
        "queued": call.queued,
        "duration": call.duration,
        "bytes_in": call.bytes_in,
        "bytes_out": call.bytes_out,
        "approval": call.approval,
        "retry_of": call.retry_of,
        "batch": call.batch,
    }


def known_fields(kind: type, data: Mapping[str, Any]) -> dict[str, Any]:
    """The items of stored data that this version of a record has fields for."""
    return {item.name: data[item.name] for item in fields(kind) if item.name in data}
