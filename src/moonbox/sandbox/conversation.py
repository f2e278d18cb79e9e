"""The conversation with a worker about one run, without I/O: it takes frames and says what happened.

Everything a worker sends is checked here: order, shape and size. A WorkerError means that the worker must go.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from moonbox.errors import LIMIT_NAMES, WorkerError
from moonbox.worker import protocol
from moonbox.worker.incoming import Decoder
from moonbox.worker.outgoing import packed
from moonbox.worker.protocol import SPENT

if TYPE_CHECKING:
    from moonbox.limits import Limits

__all__ = ["Asked", "Conversation", "Dropped", "Ended", "Printed", "Request"]

_MOST_CALLS_AT_ONCE = 10_000
_MOST_FRAMES = 64
_MOST_NAMES = 300
_LONGEST_MESSAGE = 100_000
_LONGEST_HINT = 2000
_LONGEST_NAME = 400
_LARGEST_COUNT = 1 << 53
_MEMORIES, _SLACK = 4, 1 << 20
_ENDINGS = {"ok", "syntax", "runtime", "tool", "stop"}
_STOPS = {"", "cancelled", *LIMIT_NAMES}


@dataclass(slots=True)
class Request:
    """One call that the script makes: `target` is "tools.<path>", "fn.<name>", "docs.<what>" or "sys.<what>"."""

    id: int
    target: str
    arguments: list[Any]
    size: int


@dataclass(slots=True)
class Asked:
    """The script waits for these."""

    requests: tuple[Request, ...]


@dataclass(slots=True)
class Dropped:
    """The script no longer waits for these."""

    ids: tuple[int, ...]


@dataclass(slots=True)
class Printed:
    text: bytes


@dataclass(slots=True)
class Ended:
    """The run is over: what the engine says about it."""

    kind: str
    limit: str
    message: str
    values: list[Any]
    frames: tuple[tuple[str, int, str], ...]
    extra: dict[str, Any]
    operations: int | None
    memory: int
    cpu: float
    cut: int


class Conversation:
    """One run's exchange of frames, seen from the host."""

    def __init__(self, limits: Limits, *, allow_nan: bool = False) -> None:
        self._limits = limits
        most = min(limits.max_array * 80, limits.max_memory // 10) + 20_000
        self._decode = Decoder(most, max_depth=limits.max_depth, allow_nan=allow_nan).decode
        self._printed = 0
        self._received = 0
        self._last_id = 0
        self._open: set[int] = set()

    @staticmethod
    def begin(source: bytes, number: int, seed: int) -> bytes:
        return protocol.pack(protocol.RUN, (source, number, seed))

    @staticmethod
    def halt(reason: int) -> bytes:
        return protocol.pack(protocol.HALT, reason)

    def answers(self, answers: list[tuple[int, bool, Any]]) -> bytes:
        """The frame that answers some of the open requests."""
        for call, _, _ in answers:
            self._open.discard(call)
        return protocol.pack(protocol.ANSWERS, [(call, ok, packed(value)) for call, ok, value in answers])

    def feed(self, kind: int, payload: bytes) -> Asked | Dropped | Printed | Ended:
        self._received += len(payload)
        if self._received > self._limits.max_memory * _MEMORIES + _SLACK:
            raise WorkerError(f"the worker sent more than {_MEMORIES} times max_memory in one run")
        if kind == protocol.CALLS:
            return self._asked(payload)
        if kind == protocol.OUTPUT:
            self._printed += len(payload)
            if not payload or self._printed > self._limits.max_output:
                raise WorkerError("the worker sent more output than max_output allows, or none")
            return Printed(payload)
        if kind == protocol.CANCEL:
            return self._dropped(payload)
        if kind == protocol.VALUE:
            return self._ended_well(payload)
        if kind == protocol.DONE:
            return self._ended(payload)
        raise WorkerError(f"the worker sent a frame of unknown type {kind}")

    def _asked(self, payload: bytes) -> Asked:
        data = self._decode(payload)
        if not isinstance(data, list) or not 0 < len(data) <= _MOST_CALLS_AT_ONCE:
            raise WorkerError("the worker sent malformed calls")
        share = len(payload) // len(data)
        requests = []
        for item in data:
            call, target, arguments = _parts(item)
            if not self._last_id < call < _LARGEST_COUNT or len(target) > _LONGEST_NAME:
                raise WorkerError("the worker sent a malformed call")
            self._last_id = call
            self._open.add(call)
            requests.append(Request(call, target, arguments, share))
        return Asked(tuple(requests))

    def _dropped(self, payload: bytes) -> Dropped:
        data = self._decode(payload)
        if not isinstance(data, list) or not all(type(call) is int for call in data):
            raise WorkerError("the worker sent a malformed cancellation")
        dropped = tuple(call for call in data if call in self._open)
        self._open.difference_update(dropped)
        return Dropped(dropped)

    def _ended_well(self, payload: bytes) -> Ended:
        if len(payload) < SPENT.size:
            raise WorkerError("the worker sent a malformed end of a run")
        operations, memory, cpu, cut = SPENT.unpack_from(payload)
        values = self._decode(payload[SPENT.size :])
        if type(values) is not list or operations < -1 or memory < 0 or cut < 0 or not 0 <= cpu < _LARGEST_COUNT:
            raise WorkerError("the worker sent a malformed end of a run")
        return Ended("ok", "", "", values, (), {}, None if operations < 0 else operations, memory, cpu, cut)

    def _ended(self, payload: bytes) -> Ended:
        data = self._decode(payload)
        if not isinstance(data, dict):
            raise WorkerError("the worker sent a malformed end of a run")
        try:
            return Ended(
                kind=_one_of(data["kind"], _ENDINGS),
                limit=_one_of(data["limit"], _STOPS),
                message=_typed(data["message"], str)[:_LONGEST_MESSAGE],
                values=_typed(data["values"], list),
                frames=tuple(
                    (_typed(chunk, str)[:_LONGEST_NAME], _count(line, -1), _typed(name, str)[:_LONGEST_NAME])
                    for chunk, line, name in _typed(data["frames"], list)[:_MOST_FRAMES]
                ),
                extra=_extra(data["extra"]),
                operations=None if data["operations"] is None else _count(data["operations"]),
                memory=_count(data["memory"]),
                cpu=_seconds(data["cpu"]),
                cut=_count(data["cut"]),
            )
        except (KeyError, ValueError, TypeError):
            raise WorkerError("the worker sent a malformed end of a run") from None


def _parts(item: Any) -> tuple[int, str, list[Any]]:
    """Of one call: its number, whom it is for, its arguments."""
    if type(item) is not list or list(map(type, item)) != [int, str, list]:
        raise WorkerError("the worker sent a malformed call")
    return item[0], item[1], item[2]


def _typed(value: Any, kind: type[Any]) -> Any:
    if type(value) is not kind:
        raise TypeError
    return value


def _one_of(value: Any, words: set[str]) -> str:
    if type(value) is not str or value not in words:
        raise ValueError
    return value


def _count(value: Any, least: int = 0) -> int:
    if type(value) is not int or not least <= value < _LARGEST_COUNT:
        raise ValueError
    return value


def _seconds(value: Any) -> float:
    if type(value) is not float or not 0 <= value < _LARGEST_COUNT:
        raise ValueError
    return value


def _extra(value: Any) -> dict[str, Any]:
    """Of what the worker added only what is asked for, and of that only as much as anybody would read."""
    given = _typed(value, dict)
    extra = {key: given[key] for key in ("data", "line", "column") if key in given}
    if isinstance(names := given.get("names"), list):
        extra["names"] = [name for name in names[:_MOST_NAMES] if type(name) is str and len(name) <= _LONGEST_NAME]
    if isinstance(hint := given.get("hint"), str):
        extra["hint"] = hint[:_LONGEST_MESSAGE]
    return extra
