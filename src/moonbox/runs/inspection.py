"""What a script has that waits for a call: asked of its worker, whose answer is checked like each of its frames."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta, Struct, ValidationError, convert

from moonbox.errors import WorkerError
from moonbox.worker import protocol
from moonbox.worker.encoding import Decoder

if TYPE_CHECKING:
    from moonbox.runs.execution import Execution
    from moonbox.worker.link import Link

_SECONDS = 10.0
_LARGEST, _MOST_ELEMENTS, _DEEPEST = 1 << 20, 200_000, 4  # bytes; elements; nested lists and tables of a value, thrice
_Name = Annotated[str, Meta(max_length=2_100)]


class SeenFrame(Struct, frozen=True, forbid_unknown_fields=True):
    """A function of a script that has been called and has not returned."""

    function: _Name
    line: Annotated[int, Meta(ge=-1, lt=1 << 31)]
    """-1 where it is not known."""
    own: bool
    """Whether it belongs to the script of this run; otherwise an earlier run of the Repl has defined it."""
    locals: Annotated[dict[_Name, Any], Meta(max_length=200)]


class Seen(Struct, frozen=True, forbid_unknown_fields=True):
    """A script at one moment."""

    frames: Annotated[list[SeenFrame], Meta(max_length=64)]
    """The innermost first."""
    globals: Annotated[dict[_Name, Any], Meta(max_length=200)]


def inspect(link: Link, execution: Execution, call: int) -> Seen:
    """What the script has that waits for the call with that number of the worker's.

    A worker of Python scripts is of no use after that. Raises WorkerError where the worker does not tell.
    """
    deadline = monotonic() + _SECONDS
    request = protocol.frame(protocol.INSPECT, protocol.LOOK.pack(call, execution.record.number))
    with link:
        frame = link.exchange(request, deadline, deadline)
        while frame is None or frame[0] != protocol.INSPECTED:
            if frame is not None:  # sent before the request came
                execution.frame(*frame)
            elif monotonic() >= deadline:
                raise WorkerError("the worker did not answer")
            frame = link.receive(deadline)
    return read_inspected(frame[1])


def read_inspected(payload: bytes) -> Seen:
    """The payload of an INSPECTED frame."""
    if not payload:
        raise WorkerError("the worker cannot tell what the script has")
    if len(payload) > _LARGEST:
        raise WorkerError(f"the worker sent {len(payload):,} bytes about a script; at most {_LARGEST:,} are allowed")
    plain = payload.replace(b"\\u0001", b"\\ufffd")  # marks what JSON lacks elsewhere; here everything is JSON
    try:
        return convert(Decoder(2 * _MOST_ELEMENTS, _DEEPEST).decode(plain), Seen)
    except ValidationError as problem:
        raise WorkerError(f"the worker sent a malformed description of a script: {problem}") from None
