"""RunRecord: what is known of a run while it happens, and the Run that is made of it at its end."""

from __future__ import annotations

from codecs import getincrementaldecoder
from time import time
from typing import TYPE_CHECKING, Any

from msgspec import Struct, msgpack

from moonbox.audit.answer import line_naming
from moonbox.audit.records import Run, Usage
from moonbox.compact import short
from moonbox.findings import Finding
from moonbox.runs.call_entry import CallEntry
from moonbox.runs.clock import RunClock
from moonbox.runs.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from moonbox.audit.records import Observation
    from moonbox.errors import ScriptError
    from moonbox.runs.calls import CallPath
    from moonbox.runs.decisions import ToolCall
    from moonbox.runs.intents import Intents
    from moonbox.runs.messages import RunReport
    from moonbox.runs.options import RunOptions
    from moonbox.runs.recording import RunRecorder

_LONGEST_SHOWN = 10_000
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

    language   the name of its language; "direct" for a call without a script
    intents    writes calls down before they are made; None where the trail is not durable
    on_output  called with what the script prints
    context    what its tools find as `Context.extra`
    labels     for whom the run is, and why
    """

    intents: Intents | None = None
    on_output: Callable[[str], None] | None = None
    context: Mapping[str, Any] = {}
    notes: tuple[Finding, ...] = ()
    """What the check of the script found, and results of another type than their tools declare."""
    worker_lost = False
    native = False
    """Whether the worker's loop is the native one."""
    sent = received = 0
    """Bytes to and from the worker."""
    kept = 0
    """What stays in the Repl under a name: 1 the value, 2 the output, 3 both."""
    journal: RunRecorder | None = None
    """Takes the run down, so that another process can continue it."""
    approve: Callable[[ToolCall], Any] | None = None
    """Asked before a call of a tool whose policy is "approve"."""
    approve_script: Callable[[ToolCall], Any] | None = None
    """Asked before the script runs."""
    approval: ScriptApproval | None = None
    """What a person said of the script."""
    progress: Progress | None = None
    """How far the script said that it is."""
    on_progress: Callable[[Progress], None] | None = None
    report: RunReport | None = None
    """How the worker says that the run ended."""
    printed = 0
    """Bytes that the script has printed."""
    _shown_bytes = _heard = 0
    _text_of: Callable[[bytes], str] | None = None

    def __init__(
        self,
        calls: CallPath,
        source: str,
        run_id: str,
        *,
        repl_id: str = "",
        number: int = 1,
        seed: int = 0,
        state_lost_before: bool = False,
        language: str = "",
    ) -> None:
        self.calls = calls
        self.source = source
        self.id = run_id
        self.repl_id = repl_id
        self.number = number
        self.clock = RunClock(calls.limits.timeout)
        self.entries: list[CallEntry] = []
        self.observations: list[Observation] = []
        self.language = language or calls.language.name
        self.labels: dict[str, str] = {}
        self.started = time()
        self.seed = seed
        self._state_lost_before = state_lost_before
        self._output: list[bytes] = []
        self._shown: dict[str, Any] = {}  # handles of media

    def give(self, context: Mapping[str, Any], options: RunOptions) -> None:
        """For whom the run is: the context of the Sandbox, under that of the options, and the labels."""
        own = options.get("context")
        self.context = {**context, **own} if own else context
        if labels := options.get("labels"):
            self.labels = dict(labels)

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
        self.progress = Progress.of(arguments)
        if self.on_progress is not None:
            self.on_progress(self.progress)

    def _has_field(self, name: str) -> bool:
        """Whether a result of this run shows that there is such a field, whatever was known of it before the run."""
        text = msgpack.encode(name)
        return any(text in entry.packed.data for entry in self.entries if entry.packed is not None)

    def finish(self, values: tuple[Any, ...], error: ScriptError | None) -> Run:
        """The Run with these values or this error."""
        report, media = self.report, self.calls.media
        kept = self.calls.language.kept_name(self.number) if self.kept and self.repl_id else ""
        return Run(
            id=self.id,
            source=self.source,
            language=self.language,
            values=values,
            output=self.output,
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
            notes=tuple(note for note in self.notes if note.field is None or not self._has_field(note.field)),
            media=media.found_in([*self._shown.values(), *values]) if media.kept else (),
            limits=self.calls.limits,
            labels=self.labels,
            **self._of_script(),
        )
