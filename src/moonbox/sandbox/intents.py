"""The intents of one run: each call is on file before its tool is invoked, where the sink is durable."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, cast

from msgspec.structs import replace

if TYPE_CHECKING:
    from collections.abc import Callable

    from moonbox.audit.records import Run
    from moonbox.audit.redaction import Redactor
    from moonbox.audit.sinks import IntentSink, Sink
    from moonbox.sandbox.call_entry import CallEntry

_NO_SOURCE = "[the source is kept back until the run ends: what to hide in it is known only then]"


class Intents:
    """Writes down that a run makes calls. Tools of one batch start in threads of their own."""

    def __init__(
        self, sink: IntentSink, redactor: Redactor | None, before_write: Callable[[Run], Run | None] | None
    ) -> None:
        self._sink = sink
        self._redaction = redactor.in_steps() if redactor is not None else None
        self._before_write = before_write
        self._lock = threading.Lock()
        self._announced = False

    @classmethod
    def to(
        cls, sink: Sink | None, redactor: Redactor | None, before_write: Callable[[Run], Run | None] | None = None
    ) -> Intents | None:
        """None for a sink that keeps only whole runs."""
        if sink is None or not hasattr(sink, "start_call"):
            return None
        return cls(cast("IntentSink", sink), redactor, before_write)

    def start(self, entry: CallEntry, run: Callable[[], Run]) -> None:
        """Write the call down; AuditError where that fails, and then the tool must not be invoked."""
        with self._lock:
            head = run()
            if not self._announced:
                self._sink.start_run(replace(head, source=_NO_SOURCE) if self._redaction is not None else head)
                self._announced = True
            call = entry.to_call()
            if self._before_write is not None:
                changed = self._before_write(replace(head, calls=(call,)))
                call = call if changed is None else changed.calls[0]
            if self._redaction is not None:
                call = self._redaction.start(call)
            self._sink.start_call(head.id, call)

    def answered(self, entry: CallEntry) -> None:
        """Look for what must be hidden in the answer: a later call may repeat it."""
        if self._redaction is not None and self._announced:
            with self._lock:
                self._redaction.answer(entry.to_call())
