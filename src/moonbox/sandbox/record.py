"""The record of a run while it happens: its calls, and its clock, which stands still while a person thinks."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
from time import monotonic, time
from typing import TYPE_CHECKING, Any, Protocol

from moonbox.audit.compact import short
from moonbox.audit.records import Call, CallError, CallStatus, Run, Usage
from moonbox.errors import Denied, ToolError
from moonbox.frozen import NATIVE, quick

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from moonbox.audit.records import Observation
    from moonbox.audit.telemetry import CallSpan
    from moonbox.errors import ScriptError
    from moonbox.findings import Finding
    from moonbox.sandbox.intents import Intents
    from moonbox.sandbox.messages import RunReport
    from moonbox.sandbox.opening import Opening
    from moonbox.sandbox.slots import RunningCall

    CallResult = tuple[CallStatus, Any, ToolError | None]
    """A call's status, its value, and its error."""

__all__ = ["CLOCK", "CallEntry", "RunClock", "RunRecord", "cancelled_itself", "failure", "make_run", "make_usage"]

make_call, make_run, make_usage = quick(Call), quick(Run), quick(Usage)
_LONGEST_SHOWN = 10_000
_LOOK = 0.1  # seconds between two looks at a worker's processor time


class Metered(Protocol):
    """What tells the processor time that a worker has spent."""

    @property
    def cpu(self) -> Callable[[], float] | None: ...


class RunClock:
    """Measures a run against its timeout. Whoever asks a person pauses it meanwhile, from any thread.

    A person's time is free, the worker's is not: while the clock is paused, it goes on by the processor time that the
    worker spends, so that a script cannot compute for as long as somebody thinks.
    """

    __slots__ = (
        "_began", "_cpu_before", "_lock", "_paused_at", "_pauses", "_timeout", "changed", "deadline", "worker"
    )  # fmt: skip

    def __init__(self, timeout: float | None, worker: Metered | None = None, began: float | None = None) -> None:
        if began is None:
            began = monotonic()
        self._began = began
        self._timeout = timeout
        self.worker = worker
        """Tells the processor time that is spent for the run; not to be changed while paused."""
        self._cpu_before = 0.0
        self._lock = Lock()  # several people may be asked at once, in threads of their own
        self._pauses = 0
        self._paused_at = 0.0
        self.deadline = None if timeout is None else began + timeout
        """On the monotonic clock: when the timeout passes, or, while paused, when it may have passed. None: never."""
        self.changed: Callable[[], object] | None = None
        """Called when the clock goes on, so that whoever waits for the old deadline looks at the new one."""

    @staticmethod
    def of(timeout: float | None, worker: Metered, began: float) -> RunClock:
        """The same, made quickly where the native parts are in use."""
        if _make_clock is None:
            return RunClock(timeout, worker, began)
        deadline = None if timeout is None else began + timeout
        # By position, in the order of the slots.
        return _make_clock(began, 0.0, Lock(), 0.0, 0, timeout, None, deadline, worker)  # type: ignore[no-any-return]

    def elapsed(self) -> float:
        """Seconds on the run's account."""
        if not self._pauses:
            return monotonic() - self._began
        with self._lock:
            return self._elapsed(monotonic())

    def is_late(self, now: float) -> bool:
        """Whether the timeout has passed. While paused, it finds a new deadline where it has not."""
        if self.deadline is None or now < self.deadline:
            return False
        with self._lock:
            if self._pauses:
                self._look_ahead(now)
            return self.deadline is not None and now >= self.deadline

    def worker_time(self) -> float | None:
        """Seconds of processor time that the worker has spent, where the kernel tells it."""
        cpu = None if self.worker is None else self.worker.cpu
        return None if cpu is None else cpu()

    def pause(self) -> None:
        with self._lock:
            if self._pauses == 0:
                self._paused_at = monotonic()
                self._cpu_before = self.worker_time() or 0.0
            self._pauses += 1
            self._look_ahead(self._paused_at)

    def go_on(self) -> None:
        with self._lock:
            if self._pauses == 1:
                now = monotonic()
                self._began = now - self._elapsed(now)
                self.deadline = None if self._timeout is None else self._began + self._timeout
            self._pauses -= 1
            if self._pauses:
                return
        if self.changed is not None:
            self.changed()

    @contextmanager
    def standing_still(self) -> Iterator[None]:
        self.pause()
        try:
            yield
        finally:
            self.go_on()

    def _elapsed(self, now: float) -> float:
        if not self._pauses:
            return now - self._began
        spent = self.worker_time()
        computed = 0.0 if spent is None else max(0.0, spent - self._cpu_before)
        return self._paused_at - self._began + computed

    def _look_ahead(self, now: float) -> None:
        """Paused: the worker cannot have spent the rest before as much time has passed."""
        if self._timeout is None or self.worker_time() is None:
            self.deadline = None
            return
        rest = self._timeout - self._elapsed(now)
        self.deadline = now if rest <= 0 else now + max(rest, _LOOK)


_make_clock: Any = None if NATIVE is None else NATIVE.maker(RunClock, RunClock.__slots__, RunClock)
CLOCK: ContextVar[RunClock | None] = ContextVar("moonbox_run_clock", default=None)
"""The clock of the run for which a tool is called: a tool that asks a person lets it stand still meanwhile."""


class CallEntry:
    """One call, from its arrival to its answer.

    Whoever drives the run changes its status; the thread or task that runs the tool fills in the rest on the way.
    """

    __slots__ = (
        "approval", "arguments", "batch", "began", "bytes_in", "bytes_out", "cancel", "deadline", "ended", "error",
        "failures_before", "given", "id", "index", "left", "obstacle", "received", "result", "retry_of", "running",
        "span", "started", "status", "target", "tool",
    )  # fmt: skip

    def __init__(self, call_id: int, target: str, given: list[Any], *, index: int, batch: int, size: int) -> None:
        self.id = call_id
        """The worker's number for it."""
        self.target = target
        """Whom it is for: "tools.<path>" or "fn.<name>"."""
        self.given = given
        """The arguments as the script gave them."""
        space, _, self.tool = target.partition(".")
        self.arguments: Any = given[0] if space == "tools" and _are_named(given) else given
        """By name: as the script gave them until they are bound, then with defaults; a list if they have no names."""
        self.index = index
        self.batch = batch
        self.status: CallStatus = "in_flight"
        self.result: Any = None
        self.error: CallError | None = None
        self.approval: str | None = None
        self.retry_of: int | None = None
        self.failures_before = 0
        """How many calls of the run had failed when it came."""
        self.started = time()
        self.received = monotonic()
        self.began: float | None = None
        self.ended: float | None = None
        self.deadline: float | None = None
        """On the monotonic clock: when the tool's own timeout passes."""
        self.bytes_in = size
        self.bytes_out = 0
        self.cancel: Callable[[], object] | None = None
        """Stops what runs for it, where that is possible."""
        self.left = False
        """The run is over, or does not wait for it any more: what has not begun does not begin."""
        self.obstacle = ""
        """What it waits for before its tool can start."""
        self.running: RunningCall | None = None
        """Held by what runs for it, until that has ended."""
        self.span: CallSpan | None = None

    @staticmethod
    def enter(
        call_id: int, target: str, given: list[Any], index: int, batch: int, size: int, failed: int, plain: bool = False
    ) -> CallEntry:
        """One that has arrived when so many of its run had failed; `plain` says that its tables have text for keys."""
        if _make_entry is None or target[:6] != "tools.":
            entry = CallEntry(call_id, target, given, index=index, batch=batch, size=size)
            entry.failures_before = failed
            return entry
        is_named = len(given) == 1 and type(given[0]) is dict if plain else _are_named(given)
        return _make_entry(  # type: ignore[no-any-return]
            given[0] if is_named else given, batch, size, failed, given, call_id, index, monotonic(), time(), target,
            target[6:],
        )  # fmt: skip

    @property
    def open(self) -> bool:
        return self.status == "in_flight"

    def begin(self, timeout: float | None = None) -> None:
        """The tool itself starts now; ToolError when nobody waits for it any more."""
        if self.left:
            raise ToolError("the run is over", code="cancelled")
        self.began = monotonic()
        self.obstacle = ""
        self.deadline = None if timeout is None else self.began + timeout

    def leave(self) -> None:
        """Nobody waits for it any more."""
        self.left = True
        if self.cancel is not None:
            self.cancel()

    def close(self, status: CallStatus, result: Any = None, error: ToolError | None = None) -> None:
        """It has its answer."""
        if self.ended is None:
            self.ended = monotonic()
        self.status, self.result = status, result
        if error is not None:
            self.error = CallError(error.code, error.message, error.retryable, error.data, error.detail)

    def to_call(self) -> Call:
        """The record as it is now."""
        ended = monotonic() if self.ended is None else self.ended
        began = ended if self.began is None else self.began
        return make_call(
            self.index,
            self.tool,
            self.arguments,
            self.status,
            self.result,
            self.error,
            self.started,
            began - self.received,
            ended - began if ended > began else 0.0,  # its timeout may pass in the moment in which it begins
            self.bytes_in,
            self.bytes_out,
            self.approval,
            self.retry_of,
            self.batch,
        )


def _are_named(arguments: list[Any]) -> bool:
    """Whether a call was given one table of named arguments."""
    if len(arguments) != 1 or type(arguments[0]) is not dict:
        return False
    for name in arguments[0]:  # noqa: SIM110 - quicker than all(…)
        if type(name) is not str:
            return False
    return True


_GIVEN = (
    "arguments", "batch", "bytes_in", "failures_before", "given", "id", "index", "received", "started", "target",
    "tool",
)  # fmt: skip
_AT_FIRST = {"bytes_out": 0, "left": False, "obstacle": "", "status": "in_flight"}  # all others: None
_make_entry: Any = None
if NATIVE is not None:
    _same = [name for name in CallEntry.__slots__ if name not in _GIVEN]
    _make_entry = NATIVE.maker(CallEntry, (*_GIVEN, *_same), CallEntry, tuple(map(_AT_FIRST.get, _same)))


class RunRecord:
    """What is known of a run while it happens, and the Run that is made of it in the end."""

    __slots__ = (
        "_entries", "_kept", "_language", "_limits", "_lost_before", "_native", "_observations", "_on_output",
        "_output", "_printed", "_received", "_report", "_seed", "_sent", "_shown", "_shown_bytes", "_started", "calls",
        "clock", "id", "intents", "notes", "number", "repl_id", "source", "worker_lost",
    )  # fmt: skip

    def __init__(self, opening: Opening, language: str, on_output: Callable[[str], None] | None) -> None:
        calls = self.calls = opening.calls
        self.source = opening.source
        self.id = opening.id
        self.repl_id = opening.repl_id
        self.number = opening.number
        self.notes: tuple[Finding, ...] = opening.notes
        """What a look at the script showed before the run."""
        self.intents: Intents | None = None
        """Writes calls down before they are made; None where the trail is not durable."""
        self.worker_lost = False
        self._limits = calls.limits
        self.clock = RunClock(calls.limits.timeout, began=opening.began)
        self._started = opening.started
        self._seed = opening.seed
        self._language = language
        self._lost_before = opening.lost_before
        self._on_output = on_output
        self._native = False
        self._entries: list[CallEntry] = []
        self._output: list[bytes] = []
        self._shown: list[Any] = []
        self._observations: list[Observation] = []
        self._shown_bytes = self._printed = self._sent = self._received = self._kept = 0
        self._report: RunReport | None = None

    def head(self) -> Run:
        """What is known of the run before it ends."""
        return Run(
            id=self.id,
            source=self.source,
            language=self._language,
            started=self._started,
            repl=self.repl_id,
            number=self.number,
            seed=self._seed,
            limits=self._limits,
        )

    def show(self, values: Sequence[Any]) -> None:
        """What the script gives the model besides the result: media as such, all else as part of the output."""
        media = self.calls.media
        self._shown += values
        lines = []
        for value in values:
            medium = media.get(value) if media.kept and type(value) is dict else None
            about = "" if medium is None else f"[{medium.name}: {medium.type}, {medium.size:,} bytes]"
            lines.append((about or short(value, _LONGEST_SHOWN)) + "\n")
        data = "".join(lines).encode("utf-8", "replace")
        room = self._limits.max_output - self._printed - self._shown_bytes
        if room > 0:
            self._shown_bytes += len(data[:room])
            self._output.append(data[:room])
            if self._on_output is not None:
                self._on_output(data[:room].decode("utf-8", "replace"))

    def record(self, values: tuple[Any, ...], error: ScriptError | None) -> Run:
        """The record with these values or this error."""
        report, calls, entries = self._report, self.calls, self._entries
        kept = calls.language.kept_name(self.number) if self._kept and self.repl_id else ""
        wall = self.clock.elapsed()
        # By position, in the order of their fields: names would take as long as all the rest.
        if report is None:
            usage = make_usage(wall, 0.0, None, 0, len(entries), self._sent, self._received, self._native)
        else:
            usage = make_usage(
                wall,
                report.cpu,
                report.operations,
                report.memory,
                len(entries),
                self._sent,
                self._received,
                self._native,
            )
        return make_run(
            self.id,
            self.source,
            self._language,
            values,
            b"".join(self._output).decode("utf-8", "replace") if self._output else "",
            0 if report is None else report.output_cut,
            tuple([entry.to_call() for entry in entries]) if entries else (),
            usage,
            error,
            self._started,
            self.repl_id,
            self.number,
            self._seed,
            tuple(self._observations),
            "",
            "",
            self.worker_lost or self._lost_before,
            kept if self._kept & 1 and values else "",
            f"{kept}_printed" if kept and self._kept & 2 else "",
            self.notes,
            calls.media.found_in([*self._shown, *values]) if calls.media.kept else (),
            self._limits,
        )


def cancelled_itself(tool: str) -> ToolError:
    """The error of a tool that says it was cancelled, which nobody else has done."""
    return ToolError("it was cancelled", code="cancelled", tool=tool)


def failure(error: ToolError) -> CallResult:
    """The result of a call that failed."""
    if isinstance(error, Denied):
        return "denied", None, error
    return "timeout" if error.code == "timeout" else "error", None, error
