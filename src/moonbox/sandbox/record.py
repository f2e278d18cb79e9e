"""RunRecord: what is known of a run while it happens, and the Run that is made of it at its end."""

from __future__ import annotations

from time import time
from typing import TYPE_CHECKING, Any

from moonbox.audit.compact import short
from moonbox.audit.records import Run, Usage
from moonbox.sandbox.clock import RunClock

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from moonbox.audit.records import Observation
    from moonbox.errors import ScriptError
    from moonbox.findings import Finding
    from moonbox.sandbox.call_entry import CallEntry
    from moonbox.sandbox.calls import CallPath
    from moonbox.sandbox.durable import RunJournal
    from moonbox.sandbox.intents import Intents
    from moonbox.sandbox.messages import RunReport

_LONGEST_SHOWN = 10_000


class RunRecord:
    """The record of one run under way.

    language   the name of its language; "direct" for a call without a script
    intents    writes calls down before they are made; None where the trail is not durable
    on_output  called with what the script prints
    """

    notes: tuple[Finding, ...] = ()
    """What the check of the script found."""
    worker_lost = False
    native = False
    """Whether the worker's loop is the native one."""
    sent = received = 0
    """Bytes to and from the worker."""
    kept = 0
    """What stays in the Repl under a name: 1 the value, 2 the output, 3 both."""
    journal: RunJournal | None = None
    """Takes the run down, so that another process can continue it."""
    report: RunReport | None = None
    """How the worker says that the run ended."""
    printed = 0
    """Bytes that the script has printed."""
    _shown_bytes = 0

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
        intents: Intents | None = None,
        on_output: Callable[[str], None] | None = None,
    ) -> None:
        self.calls = calls
        self.source = source
        self.id = run_id
        self.repl_id = repl_id
        self.number = number
        self.intents = intents
        self.clock = RunClock(calls.limits.timeout)
        self.entries: list[CallEntry] = []
        self.observations: list[Observation] = []
        self.language = language or calls.language.name
        self._started = time()
        self._seed = seed
        self._state_lost_before = state_lost_before
        self._on_output = on_output
        self._output: list[bytes] = []
        self._shown: list[Any] = []

    def head(self) -> Run:
        """What is known of the run before it ends."""
        return Run(
            id=self.id,
            source=self.source,
            language=self.language,
            started=self._started,
            repl=self.repl_id,
            number=self.number,
            seed=self._seed,
            limits=self.calls.limits,
        )

    def print(self, data: bytes) -> None:
        """Add printed output."""
        self.printed += len(data)
        self._output.append(data)

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
        room = self.calls.limits.max_output - self.printed - self._shown_bytes
        if room > 0:
            self._shown_bytes += len(data[:room])
            self._output.append(data[:room])
            if self._on_output is not None:
                self._on_output(data[:room].decode("utf-8", "replace"))

    def finish(self, values: tuple[Any, ...], error: ScriptError | None) -> Run:
        """The Run with these values or this error."""
        report, media = self.report, self.calls.media
        kept = self.calls.language.kept_name(self.number) if self.kept and self.repl_id else ""
        return Run(
            id=self.id,
            source=self.source,
            language=self.language,
            values=values,
            output=b"".join(self._output).decode("utf-8", "replace"),
            output_cut=0 if report is None else report.cut,
            calls=tuple([entry.to_call() for entry in self.entries]),
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
            started=self._started,
            repl=self.repl_id,
            number=self.number,
            seed=self._seed,
            observations=tuple(self.observations),
            state_lost=self.worker_lost or self._state_lost_before,
            kept=kept if self.kept & 1 and values else "",
            kept_output=f"{kept}_printed" if kept and self.kept & 2 else "",
            notes=self.notes,
            media=media.found_in([*self._shown, *values]) if media.kept else (),
            limits=self.calls.limits,
        )
