"""The worker that a Repl holds: taken from the pool, brought up to date, lost or given up, and its state with it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from msgspec import Meta, Struct, ValidationError, convert

from moonbox.errors import ClosedError, WorkerError
from moonbox.runs.environment import Additions, describe_environment
from moonbox.worker import protocol
from moonbox.worker.encoding import Decoder, RunReport, read_done
from moonbox.worker.link import Gone, Link

if TYPE_CHECKING:
    from moonbox.limits import Limits
    from moonbox.runs.execution import Execution
    from moonbox.runs.settings import Settings
    from moonbox.tools.toolbox import Toolbox
    from moonbox.worker.pool import Pool

_Answer = TypeVar("_Answer")
_FRAME_SLACK = 1 << 20
_ANSWER_SECONDS = 10.0
_MOST_FINDINGS, _DEEPEST_FINDING = 10_000, 8  # elements of the answer; levels of them
_MOST_GLOBALS = 200_000  # elements of the answer; the engine names at most 10 000 globals
_LARGEST_LOOK, _MOST_ELEMENTS = 1 << 20, 200_000  # bytes; elements
_DEEPEST = 4  # nested lists and tables of a value, thrice
_UNKNOWN = (None, -1, -1, None)
_Name = Annotated[str, Meta(max_length=2_100)]


class Lost(WorkerError):
    """The worker was lost while it was asked something."""


class Ended(Lost):
    """It has ended."""


class HeldWorker:
    """At most one worker at a time. Only the run that has the Repl's turn uses it; `close` comes from any thread."""

    __slots__ = (
        "_closed", "_is_recorded", "_pool", "_settings", "_timeout", "asleep", "has_state", "link", "loss_unseen",
    )  # fmt: skip

    def __init__(self, settings: Settings, pool: Pool, timeout: float | None, *, is_recorded: bool) -> None:
        """`timeout` is how long to wait for a worker. What runs define can be restored where they are recorded."""
        self._settings = settings
        self._pool = pool
        self._timeout = timeout
        self._is_recorded = is_recorded
        self._closed = False
        self.link: Link | None = None
        self.has_state = False
        """Scripts may have defined something in it."""
        self.loss_unseen = False
        """State was lost with a worker, and no Run has reported it yet."""
        self.asleep = False
        """What scripts have defined is in no worker, but in the journal."""

    def acquire(self) -> Link:
        """A living worker. Waits for one while all are in use."""
        return self._living() or self._take(self._pool.checkout(self._timeout))

    async def aacquire(self) -> Link:
        """The same, awaited."""
        return self._living() or self._take(await self._pool.acheckout(self._timeout))

    def _living(self) -> Link | None:
        """The worker, if there is one that lives."""
        if self.link is not None and not self.link.alive():
            self._bury(self.link)
        return self.link

    def update(self, link: Link, toolbox: Toolbox, additions: Additions, limits: Limits) -> bytes:
        """The frame that brings the worker up to date; empty when it is."""
        mark = toolbox, toolbox.revision, additions.revision, limits
        configured: Any = link.configured
        if configured == mark:
            return b""
        known: Any = configured or link.template or _UNKNOWN
        link.configured = mark
        link.memory = memory = limits.max_memory
        link.reader.largest = memory + _FRAME_SLACK
        if mark == known:
            return b""
        config: dict[str, Any] = {}
        if mark[:3] != known[:3]:
            settings = self._settings
            if configured is None:
                self._pool.lacked(
                    (*mark[:3], settings.limits), partial(settings.config_for_workers, toolbox, additions)
                )
            config["environment"] = describe_environment(toolbox, additions, settings.features, settings.language)
        if limits is not known[3] and limits != known[3]:
            config["limits"] = self._settings.limits_for_worker(limits)
        return protocol.pack(protocol.CONFIGURE, config) if config else b""

    def read_globals(self) -> dict[str, str]:
        """Names and kinds of what scripts have defined, as the worker reports them.

        Raises WorkerError, and `asleep` is true, where the worker has ended and the journal has them.
        """
        return self._ask(lambda _: protocol.frame(protocol.GLOBALS, b""), _globals_of, of_state=True)

    def check(self, source: bytes, toolbox: Toolbox, additions: Additions, limits: Limits) -> RunReport:
        """What the engine says of a script that it does not run."""
        script = protocol.frame(protocol.CHECK, source)
        return self._ask(lambda link: self.update(link, toolbox, additions, limits) + script, _checked)

    def _ask(
        self, request: Callable[[Link], bytes], read: Callable[[tuple[int, bytes]], _Answer], *, of_state: bool = False
    ) -> _Answer:
        """The worker's answer; that of another one where this one has ended, which may have had its own reason.

        Another one does not have what scripts have defined: it cannot answer a question of the state in the journal.
        """
        try:
            return self._ask_one(request, read)
        except Ended:
            if of_state and self.asleep:
                raise
            return self._ask_one(request, read)

    def _ask_one(self, request: Callable[[Link], bytes], read: Callable[[tuple[int, bytes]], _Answer]) -> _Answer:
        deadline = monotonic() + _ANSWER_SECONDS
        link = self.acquire()
        try:
            with link:
                frame = link.exchange(request(link), deadline, deadline)
                while frame is None and monotonic() < deadline:  # woken by a tool of an earlier run
                    frame = link.receive(deadline)
            if frame is None:
                raise WorkerError(f"it did not answer within {_ANSWER_SECONDS:g} seconds")
            return read(frame)
        except (WorkerError, ValueError, TypeError) as problem:
            self._bury(link)
            lost = Ended if isinstance(problem, Gone) else Lost
            raise lost(f"the worker was lost: {problem}") from None

    def lose(self) -> None:
        """The worker is gone, and with it the script's state."""
        self.drop()
        self.loss_unseen = self.loss_unseen or self.has_state
        self.has_state = False

    def sleep(self) -> None:
        """No more need of the worker until the next run, which finds what scripts have defined in the journal."""
        self.drop()
        self.asleep = self.asleep or self.has_state
        self.has_state = False

    def _bury(self, link: Link) -> None:
        """The worker has ended, or is of no use any more, while no script ran in it."""
        link.kill()
        if link.host_lost and self._is_recorded:
            self.sleep()
        else:
            self.lose()

    def drop(self) -> None:
        """No more need of the worker."""
        link, self.link = self.link, None
        self._pool.discard(link)

    def close(self, *, idle: bool) -> None:
        """For good; from any thread. An idle worker may end a little later."""
        self._closed = True
        link, self.link = self.link, None
        if link is not None:
            end = self._pool.retire if idle else self._pool.discard
            end(link)

    def _take(self, link: Link) -> Link:
        self.link = link
        if self._closed:  # by another thread, which has not seen this worker
            self.drop()
            raise ClosedError("the Repl is closed")
        return link


def _checked(frame: tuple[int, bytes]) -> RunReport:
    if frame[0] != protocol.CHECKED:
        raise WorkerError("the worker sent an unexpected frame")
    return read_done(frame[1], Decoder(_MOST_FINDINGS, max_depth=_DEEPEST_FINDING))


def _globals_of(frame: tuple[int, bytes]) -> dict[str, str]:
    if frame[0] != protocol.DEFINED:
        raise WorkerError("the worker sent an unexpected frame")
    data = Decoder(_MOST_GLOBALS, max_depth=1).decode(frame[1])
    if not isinstance(data, list):
        raise ValueError("a malformed answer")
    pairs = [(name, kind) for name, kind in data if isinstance(name, str) and isinstance(kind, str)]
    return dict(sorted(pairs))


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
    deadline = monotonic() + _ANSWER_SECONDS
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
    if len(payload) > _LARGEST_LOOK:
        most = f"at most {_LARGEST_LOOK:,} are allowed"
        raise WorkerError(f"the worker sent {len(payload):,} bytes about a script; {most}")
    plain = payload.replace(b"\\u0001", b"\\ufffd")  # marks what JSON lacks elsewhere; here everything is JSON
    try:
        return convert(Decoder(2 * _MOST_ELEMENTS, _DEEPEST).decode(plain), Seen)
    except ValidationError as problem:
        raise WorkerError(f"the worker sent a malformed description of a script: {problem}") from None
