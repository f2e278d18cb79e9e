"""The conversation with a worker about one run, without I/O: it takes frames and says what happened.

Everything a worker sends is checked here: order, shape and size. A WorkerError means that the worker must go.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from moonbox.errors import WorkerError
from moonbox.worker import protocol
from moonbox.worker.incoming import decode_json
from moonbox.worker.outgoing import packed

if TYPE_CHECKING:
    from moonbox.limits import Limits

__all__ = ["Asked", "Conversation", "Dropped", "Ended", "Printed", "Request"]

_MOST_CALLS_AT_ONCE = 10_000
_MOST_FRAMES = 64


@dataclass(frozen=True, slots=True)
class Request:
    """One call that the script makes: `target` is "tools.<path>", "fn.<name>", "docs.<what>" or "sys.<what>"."""

    id: int
    target: str
    arguments: list[Any]
    size: int


@dataclass(frozen=True, slots=True)
class Asked:
    """The script waits for these."""

    requests: tuple[Request, ...]


@dataclass(frozen=True, slots=True)
class Dropped:
    """The script no longer waits for these."""

    ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Printed:
    text: bytes


@dataclass(frozen=True, slots=True)
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

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._max_nodes = limits.max_array * 40 + 10_000
        self._printed = 0
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
        if kind == protocol.CALLS:
            return self._asked(payload)
        if kind == protocol.OUTPUT:
            self._printed += len(payload)
            if self._printed > self._limits.max_output:
                raise WorkerError("the worker sent more output than max_output allows")
            return Printed(payload)
        if kind == protocol.CANCEL:
            return self._dropped(payload)
        if kind == protocol.DONE:
            return self._ended(payload)
        raise WorkerError(f"the worker sent a frame of unknown type {kind}")

    def _asked(self, payload: bytes) -> Asked:
        data = decode_json(payload, self._max_nodes)
        if not isinstance(data, list) or not 0 < len(data) <= _MOST_CALLS_AT_ONCE:
            raise WorkerError("the worker sent malformed calls")
        share = len(payload) // len(data)
        requests = []
        for item in data:
            match item:
                case [int(call), str(target), list(arguments)] if call > self._last_id:
                    self._last_id = call
                    self._open.add(call)
                    requests.append(Request(call, target, arguments, share))
                case _:
                    raise WorkerError("the worker sent a malformed call")
        return Asked(tuple(requests))

    def _dropped(self, payload: bytes) -> Dropped:
        data = decode_json(payload, self._max_nodes)
        if not isinstance(data, list) or not all(type(call) is int for call in data):
            raise WorkerError("the worker sent a malformed cancellation")
        dropped = tuple(call for call in data if call in self._open)
        self._open.difference_update(dropped)
        return Dropped(dropped)

    def _ended(self, payload: bytes) -> Ended:
        data = decode_json(payload, self._max_nodes)
        if not isinstance(data, dict):
            raise WorkerError("the worker sent a malformed end of a run")
        try:
            return Ended(
                kind=_typed(data["kind"], str),
                limit=_typed(data["limit"], str),
                message=_typed(data["message"], str)[:100_000],
                values=_typed(data["values"], list),
                frames=tuple(
                    (_typed(chunk, str), _typed(line, int), _typed(name, str))
                    for chunk, line, name in _typed(data["frames"], list)[:_MOST_FRAMES]
                ),
                extra=_typed(data["extra"], dict),
                operations=data["operations"] if data["operations"] is None else _typed(data["operations"], int),
                memory=_typed(data["memory"], int),
                cpu=float(_typed(data["cpu"], float)),
                cut=_typed(data["cut"], int),
            )
        except (KeyError, ValueError, TypeError):
            raise WorkerError("the worker sent a malformed end of a run") from None


def _typed(value: Any, kind: type[Any]) -> Any:
    if type(value) is not kind:
        raise TypeError
    return value
