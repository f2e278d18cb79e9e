"""Records of what a script did: Run, Usage and Call; frozen values that go to JSON and back."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

from msgspec import Struct
from msgspec.structs import asdict, replace

from moonbox.audit.answer import render
from moonbox.compact import short
from moonbox.errors import ScriptError, UsageError
from moonbox.findings import Finding
from moonbox.languages.registry import DEFAULT_LANGUAGE
from moonbox.limits import Limits
from moonbox.values import Packed, from_jsonable, pack, to_jsonable
from moonbox.wording import counted

if TYPE_CHECKING:
    from moonbox.audit.redaction import Redactor
    from moonbox.media import Media

CallStatus = Literal["ok", "error", "denied", "timeout", "cancelled", "in_flight"]
CALL_STATUSES: tuple[str, ...] = get_args(CallStatus)
RunState = Literal["ok", "failed", "running", "interrupted", "unfinished"]
RUN_STATES: tuple[str, ...] = get_args(RunState)
DAMAGED = (ValueError, TypeError, LookupError, AttributeError, RecursionError)
"""The errors that reading a record raises if the record is damaged or forged."""
_Record = TypeVar("_Record", bound=Struct)

# The order in JSON, in every host.
_CALL_KEYS = (
    *("index", "tool", "arguments", "status", "ok", "result", "error", "started", "queued", "duration"),
    *("bytes_in", "bytes_out", "approval", "approval_by", "approval_reason", "original_arguments"),
    *("retry_of", "batch"),
)
_RUN_KEYS = (
    *("id", "ok", "state", "language", "source", "values", "output", "output_cut", "calls", "usage", "error"),
    *("started", "repl", "number", "parent", "tool", "seed", "observations", "state_lost", "kept", "kept_output"),
    *("notes", "limits", "labels"),
)

_SCRIPT_KEYS = ("approval", "approval_by", "approval_reason", "original_source")
_one_line = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class CallError(Struct, frozen=True):
    """Why a call failed. `detail` (the host's traceback) is only for the trail: scripts never see it."""

    code: str
    message: str
    retryable: bool = False
    data: Any = None
    detail: str | None = None


class Try(Struct, frozen=True):
    """One of several tries of a call."""

    started: float
    """Seconds since the epoch."""
    duration: float
    code: str = ""
    """Of the failure; empty where the tool succeeded."""
    message: str = ""


class Call(Struct, frozen=True):
    """One tool call inside a run."""

    index: int
    """1 for the first call of the run; calls of one batch follow each other."""
    tool: str
    arguments: Any
    status: CallStatus = "ok"
    packed: Packed | None = None
    """The result as it went to the script; `result` decodes it."""
    error: CallError | None = None
    started: float = 0.0
    """Seconds since the epoch at which the host received the call."""
    queued: float = 0.0
    """Seconds it waited (for a free slot, for approval) before the tool itself began."""
    duration: float = 0.0
    """Seconds inside the tool."""
    bytes_in: int = 0
    """Size of the arguments as they came from the script."""
    bytes_out: int = 0
    """Size of the result as it went to the script."""
    approval: str | None = None
    """What the person decided: "allowed", "always", "edited", "denied"; None when no person was asked."""
    retry_of: int | None = None
    """The index of the earlier failed call of this run with the same tool and arguments."""
    batch: int = 0
    """Calls that were sent to the host together share this number."""
    approval_by: str = ""
    """Who decided; empty where the approver did not say."""
    approval_reason: str = ""
    """Why they decided so."""
    original_arguments: Any = None
    """The arguments before the person edited them; None where nobody did."""
    approval_rule: Mapping[str, Any] | None = None
    """Which calls their decision "always" covers, by the arguments; None where it covers all."""
    spent: dict[str, Any] | None = None
    """What the tool reported that it spent, such as tokens."""
    tries: tuple[Try, ...] = ()
    """Where the tool was tried again: each try, in order. `duration` has them all, and the waits between them."""

    @property
    def ok(self) -> bool:
        return self.status == "ok"

    @property
    def failed(self) -> bool:
        """Whether it ended otherwise than well; False for one that has no end."""
        return self.status not in ("ok", "in_flight")

    @property
    def result(self) -> Any:
        """What the tool returned, as a plain value; None where the call failed."""
        return None if self.packed is None else self.packed.value

    def to_dict(self) -> dict[str, Any]:
        data = {name: getattr(self, name) for name in _CALL_KEYS}
        data["error"] = self.error and {**asdict(self.error), "data": to_jsonable(self.error.data)}
        for name in ("arguments", "result", "original_arguments"):
            data[name] = to_jsonable(data[name])
        for name in ("spent", "approval_rule"):
            if getattr(self, name) is not None:
                data[name] = to_jsonable(getattr(self, name))
        if self.tries:
            data["tries"] = [asdict(each) for each in self.tries]
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Call:
        known = known_fields(cls, data)
        for name in ("arguments", "original_arguments", "approval_rule", "spent"):
            known[name] = from_jsonable(known.get(name))
        if (result := data.get("result")) is not None:
            known["packed"] = pack(from_jsonable(result))
        if (error := known.get("error")) is not None:
            known["error"] = CallError(**{**known_fields(CallError, error), "data": from_jsonable(error.get("data"))})
        known["tries"] = tuple(Try(**known_fields(Try, each)) for each in known.get("tries", ()))
        return cls(**known)


def repacked(call: Call, change: Callable[[Any], Any]) -> Packed | None:
    """The call's result after a change, such as a redaction."""
    return None if call.packed is None else pack(change(call.packed.value))


def known_fields(kind: type, data: Mapping[str, Any]) -> dict[str, Any]:
    """The items of stored data that this version of a record has fields for."""
    names: Iterable[str] = getattr(kind, "__struct_fields__", None) or kind.__annotations__
    return {name: data[name] for name in names if name in data}


class Usage(Struct, frozen=True, kw_only=True):
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
    native: bool = False
    """Whether the worker's loop was the native one."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


class Observation(Struct, frozen=True):
    """Something that the script read from the host and that differs between runs (the clock)."""

    name: str
    value: Any


class Run(Struct, frozen=True):
    """The complete record of one script execution."""

    id: str
    source: str
    language: str = DEFAULT_LANGUAGE
    values: tuple[Any, ...] = ()
    output: str = ""
    output_cut: int = 0
    """Bytes that the script printed past `max_output`."""
    calls: tuple[Call, ...] = ()
    usage: Usage = Usage()
    error: ScriptError | None = None
    started: float = 0.0
    repl: str = ""
    """Which Repl it ran in."""
    number: int = 1
    """1 for the first run of that Repl."""
    seed: int = 0
    observations: tuple[Observation, ...] = ()
    parent: str = ""
    """The run that called the tool script of which this is an execution."""
    tool: str = ""
    """The tool script that was executed."""
    state_lost: bool = False
    """The worker ended with this run: globals defined before are gone, and the next run starts from nothing."""
    kept: str = ""
    """The name under which later scripts of the Repl find the value, where it is large."""
    kept_output: str = ""
    """The name under which they find what was printed, where that is long."""
    notes: tuple[Finding, ...] = ()
    """What a look at the script showed before it ran, and is likely a mistake."""
    media: tuple[Media, ...] = ()
    """What the script returned or showed of images, audio and files; not in records, which have their handles."""
    limits: Limits | None = None
    """What it was allowed to spend; None in records of earlier versions."""
    labels: dict[str, str] = {}
    """For whom it was, and why, as the host said."""
    approval: str | None = None
    """What a person decided about the script: "allowed", "always", "edited", "denied"; None when nobody was asked."""
    approval_by: str = ""
    approval_reason: str = ""
    original_source: str = ""
    """The script before the person edited it; empty where nobody did."""
    running: bool = False
    """The record is that of a run which has not ended yet."""

    def __repr__(self) -> str:
        if self.running:
            came_to = "running"
        elif self.error is not None:
            came_to = f"{self.error.kind}: {self.error.message[:100]}"
        else:
            came_to = ", ".join(short(value, 100) for value in self.values[:3]) or "no value"
            came_to = f"ok: {came_to}{', …' * (len(self.values) > 3)}"
        calls = f", {counted(len(self.calls), 'call')}" if self.calls else ""
        return f"<Run {self.id[:8]} {came_to}{calls}, {self.usage.wall:.3f} s>"

    @property
    def ok(self) -> bool:
        return self.error is None and not self.running

    @property
    def state(self) -> RunState:
        """Whether it succeeded, failed, is running, or did not end: because its host died, or for an unknown reason."""
        if self.running:
            return "running"
        if self.error is None:
            return "ok"
        # Not by the code alone: a tool chooses the codes of its own errors.
        code = self.error.code if self.error.kind == "crashed" else None
        return code if code in _CUT_OFF else "failed"  # type: ignore[return-value]  # the keys are states

    @property
    def value(self) -> Any:
        """The first returned value; None when there is none."""
        return self.values[0] if self.values else None

    def unwrap(self) -> Any:
        """The value, or raises the error."""
        if self.error is not None:
            raise self.error
        if self.running:
            raise UsageError("the run is still running")
        return self.value

    def for_model(self, max_chars: int = 20_000) -> str:
        """The text that goes back to the model, at most `max_chars` characters long: 20,000 are about 5,000 tokens."""
        return render(self, max_chars)

    def redacted(self, redactor: Redactor) -> Run:
        """A copy without what the redactor hides."""
        return redactor.redact(self)

    def without_details(self) -> Run:
        """A copy for those who may not see the host's code: without the tracebacks of tools."""
        calls = tuple(
            call if call.error is None else replace(call, error=replace(call.error, detail=None)) for call in self.calls
        )
        return replace(self, calls=calls)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON data: bytes, NaN and integer keys are tagged, so that `from_dict` gives the same Run back."""
        asked = self.approval or self.approval_by or self.approval_reason or self.original_source
        names = (*_RUN_KEYS, *_SCRIPT_KEYS) if asked else _RUN_KEYS
        return {
            **{name: getattr(self, name) for name in names},
            "values": to_jsonable(list(self.values)),
            "calls": [call.to_dict() for call in self.calls],
            "usage": self.usage.to_dict(),
            "error": self.error and to_jsonable(self.error.to_dict()),
            "observations": [[seen.name, to_jsonable(seen.value)] for seen in self.observations],
            "notes": [note.to_dict() for note in self.notes],
            "limits": self.limits and self.limits.to_dict(),
        }

    def to_json(self, *, indent: int | None = None) -> str:
        """One line of JSON (unless `indent` is given) that can be written as UTF-8."""
        data = self.to_dict()
        separators = (",", ":") if indent is None else None
        text = _one_line(data) if indent is None else json.dumps(data, ensure_ascii=False, indent=indent)
        try:
            text.encode()
        except UnicodeEncodeError:  # half of a surrogate pair: legal in a Python string and in JSON, not in UTF-8
            return json.dumps(data, indent=indent, separators=separators)
        return text

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Run:
        """The inverse of `to_dict`. Fields that this version does not know are ignored, missing ones take defaults."""
        known = known_fields(cls, data)
        error = known.get("error")
        return cls(
            **{
                **known,
                "values": tuple(from_jsonable(value) for value in known.get("values", ())),
                "calls": tuple(Call.from_dict(call) for call in known.get("calls", ())),
                "usage": Usage(**known_fields(Usage, known.get("usage", {}))),
                "error": None if error is None else ScriptError.from_dict(from_jsonable(error)),
                "observations": tuple(
                    Observation(name, from_jsonable(value)) for name, value in known.get("observations", ())
                ),
                "limits": _limits(known.get("limits")),
                "notes": tuple(map(Finding.from_dict, known.get("notes", ()))),
                "running": data.get("state") == "running",
            }
        )

    @classmethod
    def from_json(cls, text: str | bytes) -> Run:
        return cls.from_dict(json.loads(text))


def cut_off(run: Run, calls: Iterable[Call], state: RunState) -> Run:
    """A run of which only the start and its calls were written, in the state that its writer is in."""
    run = replace(run, calls=tuple(sorted(calls, key=lambda call: call.index)))
    if state == "running":
        return replace(run, running=True)
    return replace(run, error=ScriptError("crashed", _CUT_OFF[state], code=state), state_lost=True)


_CUT_OFF = {
    "interrupted": "the host process ended before the run did; calls that are in flight may have taken effect",
    "unfinished": (
        "the end of this run was never written: it is still running, or its host process ended; "
        "calls that are in flight may have taken effect"
    ),
}


def changed(run: Run, change: Callable[[Any], Any]) -> Run:
    """The run with a change, such as a redaction, applied to everything in it that a script or tool chose."""
    error = run.error
    if error is not None:
        names = ("message", "traceback", "hint", "code", "tool", "data")
        frames = tuple(_with(frame, ("function", "source"), change) for frame in error.frames)
        error = error.with_(frames=frames, **{name: change(getattr(error, name)) for name in names})
    return replace(
        run,
        source=change(run.source),
        original_source=change(run.original_source),
        approval_by=change(run.approval_by),
        approval_reason=change(run.approval_reason),
        output=change(run.output),
        values=tuple(map(change, run.values)),
        calls=tuple(_changed_call(call, change) for call in run.calls),
        error=error,
        labels=change(run.labels),
        notes=tuple(_with(note, ("message", "hint", "tool"), change) for note in run.notes),
    )


def _changed_call(call: Call, change: Callable[[Any], Any]) -> Call:
    """The same for a call. The name of its tool stays: an argument that is hidden must not hide what was called."""
    error = call.error and _with(call.error, ("code", "message", "data", "detail"), change)
    names = ("arguments", "original_arguments", "approval_by", "approval_reason", "approval_rule", "spent")
    tries = tuple(_with(each, ("message",), change) for each in call.tries)
    return _with(replace(call, packed=repacked(call, change), error=error, tries=tries), names, change)


def _with(record: _Record, names: Iterable[str], change: Callable[[Any], Any]) -> _Record:
    """The record with a change applied to the fields of these names."""
    return replace(record, **{name: change(getattr(record, name)) for name in names})


def _limits(data: Any) -> Limits | None:
    """The limits of a record; None where they are missing or are no limits."""
    try:
        return Limits(**known_fields(Limits, data)) if isinstance(data, dict) else None
    except UsageError:
        return None
