"""Messages of a worker about a run, checked. A worker is assumed hostile: order, shape and size are looked at here.

A WorkerError means that the worker must go.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from moonbox.errors import LIMIT_NAMES, WorkerError
from moonbox.frozen import NATIVE
from moonbox.worker.protocol import SPENT

if TYPE_CHECKING:
    from collections.abc import Mapping

    class Decode(Protocol):
        """Makes the value that begins at a place of a payload."""

        def __call__(self, payload: bytes, start: int = 0, /) -> Any: ...


__all__ = [
    "LARGEST_COUNT",
    "LONGEST_NAME",
    "RunReport",
    "make_report",
    "read_calls",
    "read_cancelled",
    "read_done",
    "value_of",
]

_MOST_CALLS_AT_ONCE = 10_000
_MOST_FRAMES = 64
_MOST_NAMES = 300
_LONGEST_MESSAGE = 100_000
LONGEST_NAME = 400
"""Characters of a call's target, or of another name."""
LARGEST_COUNT = 1 << 53
"""Numbers of calls, and other counts, stay below it."""
_SPENT = SPENT.size
_NO_EXTRA: Mapping[str, Any] = MappingProxyType({})
_KINDS = frozenset({"ok", "syntax", "runtime", "tool", "stop"})
_STOPS = frozenset({"", "cancelled", *LIMIT_NAMES})


class RunReport:
    """How a run ended, as its engine reports it."""

    __slots__ = (
        "cpu", "extra", "frames", "kind", "limit", "memory", "message", "operations", "output_cut", "values"
    )  # fmt: skip

    def __init__(self, values: list[Any], operations: int | None, memory: int, cpu: float, output_cut: int) -> None:
        self.kind = "ok"
        self.values = values
        self.operations = operations
        self.memory = memory
        self.cpu = cpu
        self.output_cut = output_cut
        self.limit = self.message = ""
        self.frames: tuple[tuple[str, int, str], ...] = ()
        self.extra: Mapping[str, Any] = _NO_EXTRA


# By position, as its own constructor.
_SAME = {"kind": "ok", "limit": "", "message": "", "frames": (), "extra": _NO_EXTRA}
make_report: Any = RunReport
if NATIVE is not None:
    _GIVEN = "values", "operations", "memory", "cpu", "output_cut"
    make_report = NATIVE.maker(RunReport, (*_GIVEN, *_SAME), RunReport, tuple(_SAME.values()))


def read_calls(payload: bytes, decode: Decode, after: int) -> list[tuple[int, str, list[Any]]]:
    """(number, target, arguments) of each call; the numbers rise from `after`."""
    data = decode(payload)
    if type(data) is not list or not 0 < len(data) <= _MOST_CALLS_AT_ONCE:
        raise WorkerError("the worker sent malformed calls")
    for item in data:
        if type(item) is not list or len(item) != 3:
            raise WorkerError("the worker sent a malformed call")
        call, target, arguments = item
        if type(call) is not int or type(target) is not str or type(arguments) is not list:
            raise WorkerError("the worker sent a malformed call")
        if not after < call < LARGEST_COUNT or len(target) > LONGEST_NAME:
            raise WorkerError("the worker sent a malformed call")
        after = call
    return data


def read_cancelled(payload: bytes, decode: Decode) -> list[int]:
    """The numbers of the calls that the script no longer waits for."""
    data = decode(payload)
    if type(data) is not list or not all(type(call) is int for call in data):
        raise WorkerError("the worker sent a malformed cancellation")
    return data


def value_of(payload: bytes, decode: Decode) -> tuple[list[Any], int | None, int, float, int]:
    """The end of a run that went well: values, operations, memory, seconds of processor time, bytes of output cut."""
    if len(payload) < _SPENT:
        raise _malformed_end()
    operations, memory, cpu, cut = SPENT.unpack_from(payload)
    values = decode(payload, _SPENT)
    if type(values) is not list or operations < -1 or memory < 0 or cut < 0 or not 0 <= cpu < LARGEST_COUNT:
        raise _malformed_end()
    return values, None if operations < 0 else operations, memory, cpu, cut


def read_done(payload: bytes, decode: Decode) -> RunReport:
    """The end of a run that failed."""
    data = decode(payload)
    try:
        report = RunReport(
            _typed(_typed(data, dict)["values"], list),
            None if data["operations"] is None else _count(data["operations"]),
            _count(data["memory"]),
            _seconds(data["cpu"]),
            _count(data["cut"]),
        )
        report.kind = _one_of(data["kind"], _KINDS)
        report.limit = _one_of(data["limit"], _STOPS)
        report.message = _typed(data["message"], str)[:_LONGEST_MESSAGE]
        report.frames = tuple(
            (_typed(chunk, str)[:LONGEST_NAME], _count(line, -1), _typed(name, str)[:LONGEST_NAME])
            for chunk, line, name in _typed(data["frames"], list)[:_MOST_FRAMES]
        )
        report.extra = _extra(data["extra"])
    except (KeyError, ValueError, TypeError):
        raise _malformed_end() from None
    return report


def _malformed_end() -> WorkerError:
    return WorkerError("the worker sent a malformed end of a run")


def _typed(value: Any, kind: type[Any]) -> Any:
    if type(value) is not kind:
        raise TypeError
    return value


def _one_of(value: Any, words: frozenset[str]) -> str:
    if type(value) is not str or value not in words:
        raise ValueError
    return value


def _count(value: Any, least: int = 0) -> int:
    if type(value) is not int or not least <= value < LARGEST_COUNT:
        raise ValueError
    return value


def _seconds(value: Any) -> float:
    if type(value) is not float or not 0 <= value < LARGEST_COUNT:
        raise ValueError
    return value


def _extra(value: Any) -> dict[str, Any]:
    """Of what the worker added only what is asked for, and of that only as much as anybody would read."""
    given = _typed(value, dict)
    extra = {key: given[key] for key in ("data", "line", "column") if key in given}
    if isinstance(names := given.get("names"), list):
        extra["names"] = [name for name in names[:_MOST_NAMES] if type(name) is str and len(name) <= LONGEST_NAME]
    if isinstance(hint := given.get("hint"), str):
        extra["hint"] = hint[:_LONGEST_MESSAGE]
    return extra
