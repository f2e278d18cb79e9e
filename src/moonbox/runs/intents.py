"""The intents of one run: where the sink is durable, each call is on file before its tool is invoked, then its end."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, cast

from msgspec.structs import replace

from moonbox.errors import AuditError, ClosedError
from moonbox.shortage import shortage
from moonbox.values import pack

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from moonbox.audit.records import Call, Run
    from moonbox.audit.redaction import Redactor
    from moonbox.audit.sinks import IntentSink, Sink
    from moonbox.runs.call_entry import CallEntry, CallResult

_NO_SOURCE = "[the source is kept back until the run ends: what to hide in it is known only then]"
_NO_RESULT = "[the result of {:,} bytes is written when the run ends]"
_LARGEST_RESULT = 10_000


class Intents:
    """Writes down that a run makes calls, and what came of them. Tools of one batch run in threads of their own."""

    def __init__(
        self, sink: IntentSink, redactor: Redactor | None, before_write: Callable[[Run], Run | None] | None
    ) -> None:
        self._sink = sink
        self._redaction = redactor.in_steps() if redactor is not None else None
        self._before_write = before_write
        self._lock = threading.Lock()
        self._announced = False
        self._ended: set[int] = set()

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
        with self._lock, writing():
            self._write(self._sink.start_call, entry.to_call(), run())

    def end(self, entry: CallEntry, run: Callable[[], Run], result: CallResult) -> None:
        """Write down what came of the call. Where that fails, the call stays in flight in the trail."""
        end_call = getattr(self._sink, "end_call", None)
        if end_call is None or entry.left:
            return
        with self._lock, contextlib.suppress(AuditError, ClosedError), writing():
            self._ended.add(entry.index)
            self._write(end_call, _bounded(entry.to_call(result)), run())

    def answered(self, entry: CallEntry) -> None:
        """Look for what must be hidden in an answer that a caller gave: a later call may repeat it."""
        if self._redaction is not None and entry.index not in self._ended:
            with self._lock:
                self._redaction.fields_of_call(entry.to_call())

    def _write(self, write: Callable[[str, Call], None], call: Call, head: Run) -> None:
        if self._before_write is not None:
            changed = self._before_write(replace(head, calls=(call,)))
            if changed is None:
                return
            call, head = changed.calls[0], replace(changed, calls=())
        if self._redaction is not None:
            head = self._redaction.run(replace(head, calls=(call,), source=""))
            call, head = head.calls[0], replace(head, calls=(), source=_NO_SOURCE)
        if not self._announced:
            self._sink.start_run(head)
            self._announced = True
        write(head.id, call)


def _bounded(call: Call) -> Call:
    """The call without a large result: the record of the whole run has it again."""
    size = 0 if call.packed is None else len(call.packed.data)
    return call if size <= _LARGEST_RESULT else replace(call, packed=pack(_NO_RESULT.format(size)))


@contextlib.contextmanager
def writing(run: Run | None = None) -> Iterator[None]:
    """For a call of a sink: an OSError becomes an AuditError, which gets the run that could not be written."""
    try:
        yield
    except AuditError as problem:
        problem.run = run
        raise
    except OSError as problem:
        reason = shortage(problem) or str(problem) or type(problem).__name__
        raise AuditError(f"the audit trail cannot be written: {reason}", run=run) from problem
