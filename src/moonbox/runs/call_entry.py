"""One call of a run, from its arrival to its answer, and the calls of a Sandbox whose tools have not ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from threading import Lock
from time import monotonic, time
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from moonbox.audit.records import Call, CallError, CallStatus, Try
from moonbox.errors import Denied, ToolError

if TYPE_CHECKING:
    from moonbox.audit.telemetry import CallSpan
    from moonbox.runs.decisions import Allowance, Answer, Decision, ToolCall
    from moonbox.runs.events import RecordedReply
    from moonbox.runs.slots import Slots
    from moonbox.values import Packed

    CallResult = tuple[CallStatus, Packed | None, ToolError | None]
    """A call's status, its value, and its error."""


APPROVALS = {"allow": "allowed", "always": "always", "edit": "edited", "deny": "denied"}
MOST_LEFT = 64
"""So many calls of a Sandbox may still run after their runs gave them up; then no other call is made."""
_LONGEST_NAME, _LONGEST_REASON = 200, 2_000


class CallEntry(Struct, eq=False):
    """One call, from its arrival to its answer.

    The thread that drives the run changes its status. The thread or task that performs the call fills in the rest.
    """

    id: int
    """The worker's number for it."""
    target: str
    """What it calls: "tools.<path>" or "fn.<name>"."""
    given: list[Any]
    """The arguments as the script gave them."""
    index: int
    batch: int
    bytes_in: int
    failures_before: int = 0
    """How many calls of the run had failed when it came."""
    run_id: str = ""
    tool: str = ""
    arguments: Any = None
    """By name: as the script gave them until they are bound, then with defaults; a list if they have no names."""
    started: float = 0.0
    received: float = 0.0
    status: CallStatus = "in_flight"
    packed: Packed | None = None
    """The result."""
    error: CallError | None = None
    approval: str | None = None
    approval_by: str = ""
    approval_reason: str = ""
    original_arguments: Any = None
    """The arguments before a person edited them."""
    retry_of: int | None = None
    began: float | None = None
    ended: float | None = None
    deadline: float | None = None
    """On the monotonic clock: when the tool's own timeout passes."""
    bytes_out: int = 0
    cancel: Callable[[], object] | None = None
    """Stops what performs it, where that is possible."""
    performing: bool = False
    """A thread or task has begun to perform it."""
    only_computes: bool = False
    """Its tool needs no thread of its own: see `Tool.thread`."""
    left: bool = False
    """The run is over, or no longer waits for it: a tool that has not begun does not begin."""
    asked: float | None = None
    """On the monotonic clock: since when it waits for a person whose answer can come through the journal."""
    obstacle: str = ""
    """What it waits for before its tool can start."""
    running: RunningCalls | None = None
    """Where it is held by what performs it, until that has ended."""
    holders: int = 0
    """How many hold it there."""
    slots: Slots | None = None
    """It has one of these, which it leaves when its tool has ended."""
    span: CallSpan | None = None
    spent: dict[str, Any] | None = None
    """What the tool reported that it spent."""
    tries: tuple[Try, ...] = ()
    """Where the tool was tried again."""
    rule: Mapping[str, Any] | None = None
    """Which calls the decision covers, by their arguments."""
    allowance: Allowance | None = None
    """What the person allowed besides this call."""
    question: ToolCall | None = None
    """It is no call of the script, but the question whether the script may run."""
    edited: dict[str, Any] | None = None
    """What the person wrote in place of its arguments."""
    on_answer: Callable[[ToolError | None], object] | None = None
    """Takes the answer of such a question."""

    def __post_init__(self) -> None:
        space, _, self.tool = self.target.partition(".")
        given = self.given
        named = space == "tools" and len(given) == 1 and type(given[0]) is dict and set(map(type, given[0])) <= {str}
        self.arguments = given[0] if named else given
        self.started, self.received = time(), monotonic()

    @property
    def open(self) -> bool:
        return self.status == "in_flight"

    @property
    def result(self) -> Any:
        """What the tool returned, as a plain value; None before that and where the call failed."""
        return None if self.packed is None else self.packed.value

    def recall(self, reply: RecordedReply) -> None:
        """It happens again as it is recorded."""
        self.tool, self.arguments, self.approval = reply.tool, reply.arguments, reply.approval
        self.started, self.began, self.ended = reply.started, self.received, self.received + reply.duration

    def begin(self, timeout: float | None = None) -> None:
        """The tool itself starts now; raises ToolError when the run no longer waits for it."""
        if self.left:
            raise ToolError("the run is over", code="cancelled")
        self.began = monotonic()
        self.obstacle = ""
        self.deadline = None if timeout is None else self.began + timeout

    def decide(self, decision: Decision) -> None:
        """A person has decided about it."""
        self.approval, self.rule = APPROVALS[decision.kind], decision.when
        self.approval_by, self.approval_reason = decision.by[:_LONGEST_NAME], decision.reason[:_LONGEST_REASON]

    def report(self, spent: Mapping[str, Any]) -> None:
        """The tool says what it spent."""
        self.spent = dict(spent)

    def leave(self) -> None:
        """The run no longer waits for it."""
        self.left = True
        cancel, self.cancel = self.cancel, None  # a task that was cancelled keeps all that it had
        if cancel is not None:
            cancel()

    def close(self, status: CallStatus, packed: Packed | None = None, error: ToolError | None = None) -> None:
        """It has its answer."""
        if self.ended is None:
            self.ended = monotonic()
        self.status, self.packed = status, packed
        if error is not None:
            self.error = call_error(error)

    def to_call(self, result: CallResult | None = None) -> Call:
        """The record as it is now, or as it will be with this result."""
        status, packed, error = (self.status, self.packed, self.error)
        if result is not None:
            status, packed, error = (*result[:2], call_error(result[2]))
        ended = monotonic() if self.ended is None else self.ended
        began = ended if self.began is None else self.began
        return Call(
            index=self.index,
            tool=self.tool,
            arguments=self.arguments,
            status=status,
            packed=packed,
            error=error,
            started=self.started,
            queued=began - self.received,
            duration=max(0.0, ended - began),  # its timeout may pass in the moment in which it begins
            bytes_in=self.bytes_in,
            bytes_out=self.bytes_out,
            approval=self.approval,
            approval_by=self.approval_by,
            approval_reason=self.approval_reason,
            original_arguments=self.original_arguments,
            approval_rule=self.rule,
            retry_of=self.retry_of,
            batch=self.batch,
            spent=self.spent,
            tries=self.tries,
        )


def call_error(error: ToolError | None) -> CallError | None:
    """What the record of a call says of its error."""
    return None if error is None else CallError(error.code, error.message, error.retryable, error.data, error.detail)


def tool_error(failed: CallError | Answer) -> ToolError:
    """The error again, from the record of a call, or from an answer that is a failure."""
    detail = failed.detail if isinstance(failed, CallError) else None
    return ToolError(failed.message, code=failed.code, retryable=failed.retryable, data=failed.data, detail=detail)


def failure(error: ToolError) -> CallResult:
    """The result of a call that failed."""
    if isinstance(error, Denied):
        return "denied", None, error
    return "timeout" if error.code == "timeout" else "error", None, error


def call_key(run_id: str, call: int) -> str:
    """The idempotency key of a call: the same for every try of one call, and of no other."""
    return f"{run_id}-{call}"


class RunningCalls:
    """Calls whose tools have not ended. Those that their runs no longer wait for are counted and bounded.

    A call is held by its own path, and by the thread or task that its tool runs in, which may be for long after its
    caller has given up. When the last of them lets it go, it leaves its slot.
    """

    def __init__(self, most_left: int = MOST_LEFT) -> None:
        self._lock = Lock()  # guards the holders of each call
        self._entries: set[CallEntry] = set()
        self._most_left = most_left

    def enter(self, entry: CallEntry) -> None:
        """A call begins; raises ToolError where too many have been left behind."""
        if len(self._entries) >= self._most_left and self._left() >= self._most_left:
            raise ToolError(
                f"{self._most_left} earlier calls timed out or were given up, and their tools are still running; "
                "no other call is made until some of them have ended",
                code="busy",
                retryable=True,
            )
        entry.running, entry.holders = self, 1
        self._entries.add(entry)  # atomic, as `discard` and the copy below

    def hold(self, entry: CallEntry) -> Callable[[], None]:
        """Hold the call besides its own path, until what this returns is called."""
        with self._lock:
            entry.holders += 1
        return partial(self.let_go, entry)

    def let_go(self, entry: CallEntry) -> None:
        """One of its holders is done."""
        with self._lock:
            entry.holders -= 1
            if entry.holders:
                return
        self._entries.discard(entry)
        if entry.slots is not None:
            entry.slots.leave()

    def all_left(self, slots: Slots) -> bool:
        """Whether every slot is held by a call that its run no longer waits for."""
        return self._left(slots) >= slots.most

    def _left(self, slots: Slots | None = None) -> int:
        return sum(entry.left for entry in self._entries.copy() if slots is None or entry.slots is slots)
