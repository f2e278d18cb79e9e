"""Services: what the runs and calls of one Sandbox share while they happen."""

from __future__ import annotations

import contextlib
import os
import threading
from _random import Random  # without the hashes and distributions of `random`, which take longer to load
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from msgspec import Struct
from msgspec.structs import replace

from moonbox.errors import AuditError, ClosedError, ToolError
from moonbox.runs.call_entry import RunningCalls
from moonbox.schema.learned import LearnedShapes, is_vague
from moonbox.shortage import shortage
from moonbox.threads import LoopThread, Threads
from moonbox.values import Packed, pack

if TYPE_CHECKING:
    from moonbox.audit.metrics import Metrics
    from moonbox.audit.records import Call, Run
    from moonbox.audit.redaction import Redactor
    from moonbox.audit.sinks import IntentSink, Sink
    from moonbox.audit.telemetry import Telemetry
    from moonbox.check.tools import ScriptTools
    from moonbox.cluster.membership import Membership
    from moonbox.languages.registry import Language
    from moonbox.runs.call_entry import CallEntry, CallResult
    from moonbox.runs.direct import DirectCall
    from moonbox.runs.environment import Additions
    from moonbox.runs.slots import Slots
    from moonbox.secrets import SecretRedactor
    from moonbox.tools.search import ToolSearch
    from moonbox.tools.tool import Tool
    from moonbox.tools.toolbox import Toolbox
    from moonbox.worker.pool import Pool

_NO_SOURCE = "[the source is kept back until the run ends: what to hide in it is known only then]"
_NO_RESULT = "[the result of {:,} bytes is written when the run ends]"
_LARGEST_RESULT = 10_000


class RecordKeeping(Struct):
    """Where records of runs go, and what is hidden in them and in results."""

    sink: Sink | None = None
    redactor: Redactor | None = None
    secrets: SecretRedactor | None = None
    """Replaces values that neither scripts nor the trail may contain."""
    metrics: Metrics | None = None

    def intents(self, before_write: Callable[[Run], Run | None] | None = None) -> Intents | None:
        """Writes the calls of one run before they are made; None for a sink that keeps only whole runs."""
        sink: Any = self.sink
        return Intents(sink, self.redactor, before_write) if hasattr(sink, "start_call") else None

    def write(self, run: Run) -> Run:
        """Count the run, and write its record to the trail, before its result is returned."""
        if self.metrics is not None:
            self.metrics.record(run)
        if self.sink is not None:
            with writing(run):
                self.sink.write(run if self.redactor is None else self.redactor.redact(run))
        return run

    def clean_result(self, packed: Packed) -> Packed:
        """What a tool returned, without secrets: a script could spell them in ways that are not recognised."""
        if self.secrets is None:
            return packed
        clean = self.secrets(packed.value)
        return packed if clean is packed.value else pack(clean)

    def clean_error(self, error: ToolError) -> ToolError:
        """The same for how a tool failed."""
        secrets = self.secrets
        if secrets is not None:
            for name in ("code", "message", "data", "detail"):
                setattr(error, name, secrets(getattr(error, name)))
            error.args = (error.message,)
        return error


class Derived:
    """What all Repls of a Sandbox share of one toolbox. It lives as long as the toolbox and the Sandbox both do."""

    search: ToolSearch | None = None
    """The index of the toolbox: making one takes long."""
    view: ScriptTools | None = None
    """The toolbox as scripts see it."""


class ToolKnowledge:
    """What is known of tools beside their definitions: how they are found, how scripts see them, what they returned."""

    def __init__(self, language: Language, learned: LearnedShapes) -> None:
        self._language = language
        self.learned = learned
        """The shapes of results, of all toolboxes that Repls of the Sandbox have."""
        self.added_names: tuple[Additions | None, frozenset[str]] = (None, frozenset())
        """The latest additions that scripts were looked at with, and the globals that they bring."""

    def search(self, toolbox: Toolbox) -> ToolSearch:
        """The search over a toolbox, which follows its changes."""
        from moonbox.tools.search import ToolSearch

        derived = self._derived(toolbox)
        if derived.search is None:
            derived.search = ToolSearch(toolbox)
        return derived.search

    def view(self, toolbox: Toolbox) -> ScriptTools:
        """The toolbox as its scripts see it now."""
        derived = self._derived(toolbox)
        view = derived.view
        if view is None or view.revision != toolbox.revision:
            from moonbox.check.tools import ScriptTools

            view = derived.view = ScriptTools(toolbox, self._language, self.learned)
        return view

    def _derived(self, toolbox: Toolbox) -> Derived:
        derived: Derived | None = toolbox.derived.get(self)
        if derived is None:
            derived = toolbox.derived[self] = Derived()
        return derived

    def learn(self, tool: Tool, packed: Packed, records: RecordKeeping, *, scripted: bool) -> None:
        """Remember how large a result is and, if the tool does not fully declare what it returns, its shape."""
        self.learned.measure(tool.path, len(packed.data), scripted=scripted)
        if tool.returns is None or is_vague(tool.returns):
            hides = None if records.redactor is None else records.redactor.hides
            self.learned.learn(tool.path, records.clean_result(packed).value, hides=hides)


@dataclass(slots=True, kw_only=True)
class Services:
    """What the runs and calls of one Sandbox share while they happen."""

    tools: ToolKnowledge
    pool: Pool = field(init=False)
    records: RecordKeeping = field(default_factory=RecordKeeping)
    telemetry: Telemetry | None = None
    cluster: Membership | None = None
    """The cluster whose nodes have its workers; None where this machine has them."""
    threads: Threads = field(default_factory=Threads)
    loop: LoopThread = field(default_factory=LoopThread)
    slots: dict[str, Slots] = field(default_factory=dict)
    """Of each tool that has a `max_concurrency`, by its path."""
    running_calls: RunningCalls = field(default_factory=RunningCalls)
    direct_calls: WeakSet[DirectCall] = field(default_factory=WeakSet)
    """Those that are under way."""
    pid: int = field(default_factory=os.getpid)
    """The process that made the Sandbox: a fork of it shares its sockets and must not use them."""
    random: Random = field(default_factory=Random)
    """For the names of Repls and runs, which are no secrets, and the seeds of scripts."""

    def new_id(self, size: int = 16) -> str:
        """A name for a Repl or a run: so many random bytes in hexadecimal digits."""
        return self.random.getrandbits(8 * size).to_bytes(size).hex()


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
