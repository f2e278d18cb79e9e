"""Records of what a script did: Call, Usage and Run, frozen values that go to JSON and back."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Literal

from moonbox.errors import ScriptError
from moonbox.values import from_jsonable, to_jsonable

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Call", "CallError", "CallStatus", "Observation", "Run", "Usage"]

CallStatus = Literal["ok", "error", "denied", "timeout", "cancelled", "in_flight"]


@dataclass(frozen=True, slots=True)
class CallError:
    """Why a call failed. `detail` (the host's traceback) is for the trail alone: scripts never see it."""

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
        data = {item.name: getattr(self, item.name) for item in fields(self)}
        data["ok"] = self.ok
        data["arguments"] = to_jsonable(self.arguments)
        data["result"] = to_jsonable(self.result)
        if self.error is not None:
            data["error"] = {item.name: getattr(self.error, item.name) for item in fields(self.error)}
            data["error"]["data"] = to_jsonable(self.error.data)
        return data

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Call:
        data = {key: value for key, value in data.items() if key != "ok"}
        if data.get("error") is not None:
            error = data["error"]
            data["error"] = CallError(**{**error, "data": from_jsonable(error.get("data"))})
        data["arguments"] = from_jsonable(data.get("arguments"))
        data["result"] = from_jsonable(data.get("result"))
        return cls(**data)


@dataclass(frozen=True, slots=True)
class Usage:
    """What a run spent."""

    wall: float = 0.0
    """Seconds from start to end, waiting for a person excluded."""
    cpu: float = 0.0
    """Seconds of processor time in the worker."""
    operations: int | None = None
    """Counted only where `max_operations` is set (Lua) or always (Rhai)."""
    peak_memory: int = 0
    """The most bytes the environment was seen to hold (looked at when calls are made and at the end)."""
    calls: int = 0
    bytes_in: int = 0
    """Bytes sent to the worker."""
    bytes_out: int = 0
    """Bytes received from the worker."""

    def to_dict(self) -> dict[str, Any]:
        return {item.name: getattr(self, item.name) for item in fields(self)}


@dataclass(frozen=True, slots=True)
class Observation:
    """Something that the script read from the host and that differs between runs (the clock)."""

    name: str
    value: Any


@dataclass(frozen=True, slots=True)
class Run:
    """The complete record of one script execution."""

    id: str
    source: str
    language: str = "lua"
    values: tuple[Any, ...] = ()
    output: str = ""
    output_cut: int = 0
    """Bytes that the script printed past `max_output`."""
    calls: tuple[Call, ...] = ()
    usage: Usage = field(default_factory=Usage)
    error: ScriptError | None = None
    started: float = 0.0
    repl: str = ""
    """Which Repl it ran in."""
    number: int = 1
    """1 for the first run of that Repl."""
    seed: int = 0
    observations: tuple[Observation, ...] = ()
    state_lost: bool = False
    """The worker ended with this run: globals defined before are gone, the next run starts afresh."""

    @property
    def ok(self) -> bool:
        return self.error is None

    @property
    def value(self) -> Any:
        """The first returned value; None when there is none."""
        return self.values[0] if self.values else None

    def unwrap(self) -> Any:
        """The value, or raises the error."""
        if self.error is not None:
            raise self.error
        return self.value

    def for_model(self, max_chars: int = 50_000) -> str:
        """The text that goes back to the model, at most `max_chars` characters long."""
        from moonbox.audit.answer import render

        return render(self, max_chars)

    def redacted(self, redact: Callable[[Any], Any]) -> Run:
        """A copy with `redact` applied to the arguments and result of every call."""
        calls = tuple(replace(c, arguments=redact(c.arguments), result=redact(c.result)) for c in self.calls)
        return replace(self, calls=calls)

    def to_dict(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "ok": self.ok,
            "language": self.language,
            "source": self.source,
            "values": [to_jsonable(value) for value in self.values],
            "output": self.output,
            "output_cut": self.output_cut,
            "calls": [call.to_dict() for call in self.calls],
            "usage": self.usage.to_dict(),
            "error": None if self.error is None else to_jsonable(self.error.to_dict()),
            "started": self.started,
            "repl": self.repl,
            "number": self.number,
            "seed": self.seed,
            "observations": [[seen.name, to_jsonable(seen.value)] for seen in self.observations],
            "state_lost": self.state_lost,
        }

    def to_json(self, *, indent: int | None = None) -> str:
        return json.dumps(self.to_dict(), ensure_ascii=False, indent=indent)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Run:
        data = {key: value for key, value in data.items() if key != "ok"}
        error = data["error"]
        return cls(
            **{
                **data,
                "values": tuple(from_jsonable(value) for value in data["values"]),
                "calls": tuple(Call.from_dict(call) for call in data["calls"]),
                "usage": Usage(**data["usage"]),
                "error": None if error is None else ScriptError.from_dict(from_jsonable(error)),
                "observations": tuple(Observation(name, from_jsonable(value)) for name, value in data["observations"]),
            }
        )

    @classmethod
    def from_json(cls, text: str | bytes) -> Run:
        return cls.from_dict(json.loads(text))
