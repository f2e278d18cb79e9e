"""RunRecord: what is known of a run while it happens, its clock, and the Run that is made of it at its end."""

from __future__ import annotations

from codecs import getincrementaldecoder
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
from time import monotonic, time
from typing import TYPE_CHECKING, Any

from msgspec import Struct, msgpack

from moonbox.audit.answer import line_naming
from moonbox.audit.records import Observation, Run, Usage
from moonbox.compact import short
from moonbox.errors import ScriptError, ToolError
from moonbox.findings import Finding
from moonbox.runs.call_entry import CallEntry
from moonbox.wording import visible

if TYPE_CHECKING:
    from moonbox.runs.calls import CallPath
    from moonbox.runs.decisions import ToolCall
    from moonbox.runs.options import RunOptions
    from moonbox.runs.recording import RunRecorder
    from moonbox.runs.services import Intents
    from moonbox.worker.encoding import RunReport
    from moonbox.worker.link import Link

_LONGEST_SHOWN = 10_000
_LONGEST_TEXT, _LARGEST = 200, 2**63  # of a ScriptProgress
_LOOK = 0.1  # seconds between two looks at a worker's processor time
_MOST_NOTES = 100
_NEARLY_ALL = 0.8
"""The part of a run's time from which on one call is what took it."""


class ScriptApproval(Struct, frozen=True):
    """What a person said of a script, before it ran."""

    approval: str
    """As `Call.approval` has it."""
    by: str = ""
    reason: str = ""
    original: str = ""
    """The script before they edited it."""
    source: str = ""
    """The edited one."""


class RunRecord:
    """The record of one run under way.

    language        the name of its language; "direct" for a call without a script
    context         what its tools find as `Context.extra`
    labels          for whom the run is, and why
    intents         writes calls down before they are made; None where the trail is not durable
    on_output       called with what the script prints
    notes           what the check of the script found, and results of another type than their tools declare
    native          whether the worker's loop is the native one
    sent, received  bytes to and from the worker
    kept            what stays in the Repl under a name: 1 the value, 2 the output, 3 both
    journal         takes the run down, so that another process can continue it
    approve         asked before a call of a tool whose policy is "approve"
    approve_script  asked before the script runs
    approval        what a person said of the script
    progress        how far the script said that it is
    report          how the worker says that the run ended
    printed         bytes that the script has printed
    """

    __slots__ = (
        "_heard", "_output", "_shown", "_shown_bytes", "_state_lost_before", "_text_of", "approval", "approve",
        "approve_script", "calls", "clock", "context", "entries", "id", "intents", "journal", "kept", "labels",
        "language", "native", "notes", "number", "observations", "on_output", "on_progress", "printed", "progress",
        "received", "repl_id", "report", "seed", "sent", "source", "started", "worker_lost",
    )  # fmt: skip

    def __init__(
        self,
        calls: CallPath,
        source: str,
        run_id: str,
        context: Mapping[str, Any],
        options: RunOptions,
        *,
        repl_id: str = "",
        number: int = 1,
        seed: int = 0,
        state_lost_before: bool = False,
        language: str = "",
    ) -> None:
        """`context` is the Sandbox's; that of the options goes over it."""
        self.calls = calls
        self.source = source
        self.id = run_id
        self.repl_id = repl_id
        self.number = number
        self.clock = RunClock(calls.limits.timeout)
        self.entries: list[CallEntry] = []
        self.observations: list[Observation] = []
        self.language = language or calls.language.name
        self.context = {**context, **(options["context"] or {})} if "context" in options else context
        self.labels: dict[str, str] = dict(options["labels"] or {}) if "labels" in options else {}
        self.on_progress = options.get("on_progress")
        self.started = time()
        self.seed = seed
        self._state_lost_before = state_lost_before
        self.intents: Intents | None = None
        self.on_output: Callable[[str], None] | None = None
        self.notes: tuple[Finding, ...] = ()
        self.worker_lost = self.native = False
        self.sent = self.received = self.kept = self.printed = 0
        self.journal: RunRecorder | None = None
        self.approve: Callable[[ToolCall], Any] | None = None
        self.approve_script: Callable[[ToolCall], Any] | None = None
        self.approval: ScriptApproval | None = None
        self.progress: ScriptProgress | None = None
        self.report: RunReport | None = None
        self._output: list[bytes] = []
        self._shown: dict[str, Any] = {}  # handles of media
        self._shown_bytes = self._heard = 0
        self._text_of: Callable[[bytes], str] | None = None

    def head(self) -> Run:
        """What is known of the run before it ends."""
        return Run(
            id=self.id,
            source=self.source,
            language=self.language,
            started=self.started,
            repl=self.repl_id,
            number=self.number,
            seed=self.seed,
            limits=self.calls.limits,
            labels=self.labels,
            **self._of_script(),
        )

    @property
    def output(self) -> str:
        """What was printed so far."""
        return b"".join(self._output).decode("utf-8", "replace")

    def _of_script(self) -> dict[str, Any]:
        said = self.approval
        if said is None:
            return {}
        texts = {"approval_by": said.by, "approval_reason": said.reason, "original_source": said.original}
        return {"approval": said.approval, **texts}

    def print(self, data: bytes) -> None:
        """Add printed output."""
        self._put_out(data)
        self.printed += len(data)

    def _put_out(self, data: bytes) -> None:
        self._output.append(data)
        if self.on_output is not None:
            self._text_of = self._text_of or getincrementaldecoder("utf-8")("replace").decode
            known = max(0, self._heard - self.printed - self._shown_bytes)
            if text := self._text_of(data[known:]):
                self.on_output(text)

    def continue_output(self, lost: RunRecord) -> None:
        """Go on with the output of the same run in a lost worker: `on_output` does not get the same text again."""
        self._heard = max(lost._heard, lost.printed + lost._shown_bytes)
        self._text_of = lost._text_of

    def show(self, values: Sequence[Any]) -> None:
        """What the script gives the model besides the result: media as such, all else as part of the output."""
        media = self.calls.media
        if media.kept:
            self._shown |= {medium.address: {"media": medium.address} for medium in media.found_in(values)}
        room = self.calls.limits.max_output - self.printed - self._shown_bytes
        if room <= 0:
            return
        lines = []
        for value in values:
            medium = media.get(value) if media.kept and type(value) is dict else None
            about = "" if medium is None else f"[{medium.name}: {medium.type}, {medium.size:,} bytes]"
            lines.append((about or short(value, _LONGEST_SHOWN)) + "\n")
        data = "".join(lines).encode("utf-8", "replace")
        self._put_out(data[:room])
        self._shown_bytes += len(data[:room])

    def note(self, message: str, tool: str) -> None:
        """What a call showed, told once beside the result."""
        found = Finding("note", message, 0, tool=tool)
        if found not in self.notes and len(self.notes) < _MOST_NOTES:
            self.notes = (*self.notes, found)

    def name_slow_call(self, error: ScriptError) -> ScriptError:
        """The error of a run out of time; its hint names the call that took nearly all of the time, if one did."""
        calls, spent = [entry.to_call() for entry in self.entries], self.clock.elapsed()
        slowest = max(calls, key=lambda call: call.duration, default=None)
        if slowest is None or slowest.duration < _NEARLY_ALL * spent:
            return error
        line = line_naming(slowest.tool, self.source) or (error.line if slowest.status == "in_flight" else None)
        where = f" on line {line}" if line is not None else ""
        seconds = f"{min(slowest.duration, spent):.1f} of {spent:.1f} seconds"
        hint = f"the call of '{slowest.tool}'{where} took {seconds}: ask it for less, or go on without it"
        return error.with_(hint=hint)

    def advance(self, arguments: Sequence[Any]) -> None:
        """The script says how far it is; raises ToolError where that makes no sense."""
        self.progress = ScriptProgress.of(arguments)
        if self.on_progress is not None:
            self.on_progress(self.progress)

    def _has_field(self, name: str) -> bool:
        """Whether a result of this run shows that there is such a field, whatever was known of it before the run."""
        text = msgpack.encode(name)  # it may also be a value
        results = [entry.packed for entry in self.entries if entry.packed is not None and text in entry.packed.data]
        return any(_has_key(result.value, name) for result in results)

    def finish(self, values: tuple[Any, ...], error: ScriptError | None) -> Run:
        """The Run with these values or this error."""
        report, media, notes = self.report, self.calls.media, self.notes
        kept = self.calls.language.kept_name(self.number) if self.kept and self.repl_id else ""
        if notes:
            notes = tuple(note for note in notes if note.field is None or not self._has_field(note.field))
        return Run(
            id=self.id,
            source=self.source,
            language=self.language,
            values=values,
            output=self.output if self._output else "",
            output_cut=0 if report is None else report.cut,
            calls=tuple(map(CallEntry.to_call, self.entries)),
            usage=Usage(
                wall=self.clock.elapsed(),
                cpu=0.0 if report is None else report.cpu,
                operations=None if report is None else report.operations,
                peak_memory=0 if report is None else report.memory,
                calls=len(self.entries),
                bytes_in=self.sent,
                bytes_out=self.received,
                native=self.native,
            ),
            error=error,
            started=self.started,
            repl=self.repl_id,
            number=self.number,
            seed=self.seed,
            observations=tuple(self.observations),
            state_lost=self.worker_lost or self._state_lost_before,
            kept=kept if self.kept & 1 and values else "",
            kept_output=f"{kept}_printed" if kept and self.kept & 2 else "",
            notes=notes,
            media=media.found_in([*self._shown.values(), *values]) if media.kept else (),
            limits=self.calls.limits,
            labels=self.labels,
            **(self._of_script() if self.approval is not None else {}),
        )


def _has_key(value: Any, name: str) -> bool:
    """Whether an object in the value has that key."""
    if isinstance(value, dict):
        return name in value or any(_has_key(item, name) for item in value.values())
    return isinstance(value, list) and any(_has_key(item, name) for item in value)


class RunClock:
    """Measures a run against its timeout. Code that asks a person pauses it, from any thread.

    A person's time is free, the worker's is not: while the clock is paused, it advances by the processor time that the
    worker spends. So a script cannot compute for as long as a person thinks.
    """

    __slots__ = (
        "_began", "_cpu_before", "_lock", "_outer", "_paused_at", "_pauses", "_timeout", "changed", "deadline", "worker"
    )  # fmt: skip

    def __init__(self, timeout: float | None) -> None:
        self._began = monotonic()
        self._timeout = timeout
        self._outer = CLOCK.get()  # of the run for whose call this run is made: it pauses together with this one
        self.worker: Link | None = None
        """Gives the processor time that is spent for the run; not to be changed while the clock is paused."""
        self._cpu_before = 0.0
        self._lock = Lock()  # several people may be asked at once, each from a thread of its own
        self._pauses = 0
        self._paused_at = 0.0
        self.deadline = None if timeout is None else self._began + timeout
        """On the monotonic clock: when the timeout passes, or, while paused, when it may have passed. None: never."""
        self.changed: Callable[[], object] | None = None
        """Called when the clock goes on: the driver of the run then reads the new deadline."""

    def elapsed(self) -> float:
        """Seconds that count for the run."""
        if not self._pauses:
            return monotonic() - self._began
        with self._lock:
            return self._elapsed(monotonic())

    def left(self) -> float | None:
        """Seconds until the timeout; None where there is none."""
        return None if self._timeout is None else self._timeout - self.elapsed()

    def is_late(self, now: float) -> bool:
        """Whether the timeout has passed. While paused, it sets a new deadline where it has not."""
        if self.deadline is None or now < self.deadline:
            return False
        with self._lock:
            if self._pauses:
                self._look_ahead(now)
            return self.deadline is not None and now >= self.deadline

    def worker_time(self) -> float | None:
        """Seconds of processor time that the worker has spent, where the kernel provides them."""
        cpu = None if self.worker is None else self.worker.cpu
        return None if cpu is None else cpu()

    def pause(self) -> None:
        if self._outer is not None:
            self._outer.pause()
        with self._lock:
            if self._pauses == 0:
                self._paused_at = monotonic()
                self._cpu_before = self.worker_time() or 0.0
            self._pauses += 1
            self._look_ahead(self._paused_at)

    def go_on(self) -> None:
        if self._outer is not None:
            self._outer.go_on()
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
        """While paused: the worker cannot have spent the rest before as much time has passed."""
        if self._timeout is None or self.worker_time() is None:
            self.deadline = None
            return
        rest = self._timeout - self._elapsed(now)
        self.deadline = now if rest <= 0 else now + max(rest, _LOOK)


CLOCK: ContextVar[RunClock | None] = ContextVar("moonbox_run_clock", default=None)
"""The clock of the run for which a tool is called: a tool that asks a person pauses it."""


class ScriptProgress(Struct, frozen=True):
    """How far a script says that it is."""

    done: float
    total: float | None = None
    text: str = ""

    @classmethod
    def of(cls, arguments: Sequence[Any]) -> ScriptProgress:
        """From what the script gave; raises ToolError where that makes no sense."""
        done, total, text = (*arguments[:3], None, None, None)[:3]
        if not _is_number(done) or not (total is None or _is_number(total)) or not isinstance(text, str | None):
            message = "write: progress(done, total, text), two numbers and a text; total and text may be left out"
            raise ToolError(message, code="invalid")
        return cls(done, total, " ".join((text or "").split())[:_LONGEST_TEXT])


def progress_words(progress: ScriptProgress) -> str:
    """For a line of text: `3 of 10, rows`."""
    amount = f"{progress.done:g}" + (f" of {progress.total:g}" if progress.total is not None else "")
    return amount + (f", {visible(progress.text, keep='')}" if progress.text else "")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _LARGEST
