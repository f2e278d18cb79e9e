"""What a run asks of the journal, which stands above it: the contract of what records runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from moonbox.audit.records import Run
    from moonbox.runs.call_entry import CallEntry, CallResult
    from moonbox.runs.decisions import Allowance, Decision, ToolCall
    from moonbox.runs.events import Begin, Record, RecordedReply
    from moonbox.runs.execution import Execution
    from moonbox.runs.record import RunRecord, ScriptApproval
    from moonbox.values import Packed
    from moonbox.worker.link import Link


class Recorded(Protocol):
    """A recorded run, which is run again."""

    @property
    def begin(self) -> Begin: ...
    @property
    def repeats(self) -> bool: ...
    @property
    def was_admitted(self) -> bool: ...
    @property
    def script(self) -> ScriptApproval | None: ...
    @property
    def is_untouched(self) -> bool: ...


class RunRecorder(Protocol):
    """Takes one run down, and gives the recorded answers while it is run again. See `RunJournal`."""

    replaying: bool
    may_leave_people: bool
    """Whether the answers of people come through the journal: nothing of this process need wait for them."""
    decisions: Mapping[int, CallResult | None]

    def called(self, items: list[tuple[int, str, list[Any]]]) -> bool: ...
    def answered(self, replies: list[tuple[int, bool, Packed]], entries: list[CallEntry]) -> None: ...
    def slept(self, call: int, until: float) -> float: ...
    def printed(self, data: bytes) -> None: ...
    def ended(self, payload: bytes) -> None: ...
    def approved(self, entry: CallEntry) -> None: ...
    def decided(self, said: ScriptApproval, allowance: Allowance | None) -> None: ...
    def sooner(self, deadline: float | None) -> float | None: ...
    def is_due(self, *, starting: bool) -> bool: ...
    def take(self) -> list[Record]: ...
    def put(self, records: list[Record]) -> None: ...
    def next_answers(self) -> Sequence[RecordedReply]: ...
    def go_on(self) -> bool: ...
    def stop_waiting(self) -> None: ...
    def fail(self, problem: Exception) -> None: ...
    def finish(self, run: Run, *, lost: bool) -> bool: ...


class Sleep(Protocol):
    """A run that has given its worker back, until a time or an answer. See `durable.watch`."""

    record: RunRecord

    def wait(self) -> None: ...
    async def passed(self) -> None: ...
    def leave(self) -> None: ...


class History(Protocol):
    """The recorded runs of one Repl. See `ReplHistory`."""

    @property
    def writes_first(self) -> bool:
        """Whether the journal is written to before the next run begins."""

    def let_go(self) -> bool:
        """The worker is of no use any more: the next run finds in the journal what scripts have defined, if it can."""

    def take_down(
        self,
        record: RunRecord,
        inputs: list[tuple[str, Any]],
        recorded: Recorded | None,
        decisions: Mapping[int, CallResult | None] | None,
    ) -> None:
        """Have the run recorded, or compared with its record."""

    def wake(self) -> Link:
        """A worker in which the recorded runs were run again."""

    def move(self, lost: Execution) -> tuple[Link, Execution]:
        """The run, begun again in another worker, where the host of its worker is lost."""

    def sleep(self, execution: Execution) -> Sleep:
        """Give the worker back for a run that waits for a time or for people."""

    def regain(self, run: str) -> bool:
        """Whether no other process goes on with this run, which sleeps: its end can be written here."""

    def rise(self, sleep: Any) -> tuple[Link, Execution] | None:
        """That run, begun again in another worker; None where another process is running it."""

    async def ask(self, call: ToolCall) -> Decision:
        """A person's decision about a call, which may be in the journal already."""
