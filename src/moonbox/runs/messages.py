"""Messages of a worker about a run. Their shapes are checked as they are decoded: a worker is assumed hostile.

A WorkerError means that the worker must be ended.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta, Struct, ValidationError, convert

from moonbox.errors import LIMIT_NAMES, WorkerError
from moonbox.worker.protocol import SPENT

if TYPE_CHECKING:
    from moonbox.worker.encoding import Decoder

_MOST_CALLS_AT_ONCE = 10_000
_MOST_FRAMES = 64
_MOST_NAMES = 300
_LONGEST_MESSAGE = 100_000
_LONGEST_NAME = 400  # characters of a call's target, or of another name
_LARGEST_COUNT = 1 << 53
_SPENT = SPENT.size
_MALFORMED_END = "the worker sent a malformed end of a run"
_STOPS = frozenset({"", "cancelled", *LIMIT_NAMES})

_Count = Annotated[int, Meta(ge=0, lt=_LARGEST_COUNT)]
_Seconds = Annotated[float, Meta(ge=0, lt=_LARGEST_COUNT)]


class RunReport(Struct, kw_only=True):
    """How a run ended, as its engine reports it."""

    kind: Literal["ok", "syntax", "runtime", "tool", "stop"]
    values: list[Any]
    operations: _Count | None
    memory: _Count
    cpu: _Seconds
    cut: _Count
    """Bytes printed past `max_output`."""
    limit: str
    message: str
    frames: list[tuple[str, Annotated[int, Meta(ge=-1, lt=_LARGEST_COUNT)], str]]
    extra: dict[str, Any]


def read_calls(payload: bytes, decoder: Decoder, after: int) -> list[tuple[int, str, list[Any]]]:
    """(number, target, arguments) of each call; the numbers rise from `after`."""
    calls = decoder.decode(payload)
    if type(calls) is not list or not 0 < len(calls) <= _MOST_CALLS_AT_ONCE:
        raise WorkerError("the worker sent malformed calls")
    for call in calls:
        if type(call) is not list or len(call) != 3:
            raise WorkerError("the worker sent a malformed call")
        number, target, arguments = call
        if type(number) is not int or type(target) is not str or type(arguments) is not list:
            raise WorkerError("the worker sent a malformed call")
        if not after < number < _LARGEST_COUNT or len(target) > _LONGEST_NAME:
            raise WorkerError("the worker sent a malformed call")
        after = number
    return calls


def read_cancelled(payload: bytes, decoder: Decoder) -> list[int]:
    """The numbers of the calls that the script no longer waits for."""
    numbers = decoder.decode(payload)
    if type(numbers) is not list or not all(type(number) is int for number in numbers):
        raise WorkerError("the worker sent a malformed cancellation")
    return numbers


def read_value(payload: bytes, decoder: Decoder) -> RunReport:
    """The end of a run that went well: what it spent, then its values."""
    if len(payload) < _SPENT:
        raise WorkerError(_MALFORMED_END)
    operations, memory, cpu, cut = SPENT.unpack_from(payload)
    values = decoder.decode(payload, _SPENT)
    if type(values) is not list or operations < -1 or memory < 0 or cut < 0 or not 0 <= cpu < _LARGEST_COUNT:
        raise WorkerError(_MALFORMED_END)
    return RunReport(
        kind="ok",
        values=values,
        operations=None if operations < 0 else operations,
        memory=memory,
        cpu=cpu,
        cut=cut,
        limit="",
        message="",
        frames=[],
        extra={},
    )


def read_done(payload: bytes, decoder: Decoder) -> RunReport:
    """The end of a run that failed. Of long texts and lists it keeps the beginning."""
    try:
        report = convert(decoder.decode(payload), RunReport)
    except ValidationError:
        raise WorkerError(_MALFORMED_END) from None
    if report.limit not in _STOPS:
        raise WorkerError(_MALFORMED_END)
    report.message = report.message[:_LONGEST_MESSAGE]
    report.frames = [
        (chunk[:_LONGEST_NAME], line, name[:_LONGEST_NAME]) for chunk, line, name in report.frames[:_MOST_FRAMES]
    ]
    report.extra = _extra(report.extra)
    return report


def _extra(given: dict[str, Any]) -> dict[str, Any]:
    """The known parts of what the worker added, each within its bounds."""
    extra: dict[str, Any] = {key: given[key] for key in ("data", "line", "column") if key in given}
    if given.get("lost") is True:
        extra["lost"] = True
    if isinstance(names := given.get("names"), list):
        extra["names"] = [name for name in names[:_MOST_NAMES] if type(name) is str and len(name) <= _LONGEST_NAME]
    if isinstance(hint := given.get("hint"), str):
        extra["hint"] = hint[:_LONGEST_MESSAGE]
    return extra
