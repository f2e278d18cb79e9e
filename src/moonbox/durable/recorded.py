"""Recorded runs: what a journal says of the runs of a Repl, and what becomes of calls that a crash cut off."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from moonbox.errors import InDoubt, ToolError, UsageError
from moonbox.runs.call_entry import call_error, call_key, tool_error
from moonbox.runs.decisions import Allowance, Answer
from moonbox.runs.events import (
    Answers,
    Approved,
    Begin,
    CallsAsked,
    End,
    Environment,
    Medium,
    Patched,
    Record,
    RecordedReply,
    Reset,
    Slept,
)
from moonbox.tools.results import error_value
from moonbox.values import pack

if TYPE_CHECKING:
    from moonbox.runs.call_entry import CallResult
    from moonbox.runs.environment import Additions
    from moonbox.runs.record import ScriptApproval
    from moonbox.tools.toolbox import Toolbox

    Item = tuple[int, str, list[Any]]
    """A call as its worker asks for it: its number, its target, its arguments."""
    Decisions = Mapping[int, CallResult | None]
    """What calls without an answer get, by their numbers; None: the call is made again."""


class PendingCall(Struct, frozen=True, kw_only=True):
    """A call without an answer in the journal: its tool may have been invoked."""

    run_id: str
    call: int
    """The worker's number for it, which no other call of the run has."""
    tool: str
    arguments: Any
    repeatable: bool
    """Its tool may be called twice (`Tool.is_repeatable`), or it waited for a person's approval."""
    key: str
    """The call's idempotency key, which its tool finds in its Context."""


class InterruptedRun(Struct, frozen=True, kw_only=True):
    """A run that a crash cut off."""

    run_id: str
    repl_id: str
    source: str
    began: float
    pending: tuple[PendingCall, ...]
    """Calls without an answer."""


class RecordedRun:
    """One run of the journal: how it began, what it asked, what it was answered, and how it ended."""

    def __init__(self, begin: Begin) -> None:
        self.begin = begin
        self.records: list[Record] = [begin]
        """What has happened, as if the latest script had been there from the start."""
        self.calls: list[CallsAsked] = []
        self.answers: list[Answers] = []
        self.approved: set[int] = set()
        self.allowances: list[Allowance] = []
        self.script: ScriptApproval | None = None
        self.media: list[Medium] = []
        self.slept: dict[int, float] = {}
        """When calls of `sleep` are to be answered, by their numbers."""
        self.end: End | None = None
        self.is_cut = False
        """It is looked at: the record has more than this, and nothing of it is kept anywhere."""
        self.left_out: list[tuple[int, PendingCall, RecordedReply | None]] = []
        """Calls that were made and that a correction leaves out: the number of what follows, the call, its answer."""
        self.replaced: dict[int, RecordedReply] = {}
        """What tools had answered where a correction has other answers, by the numbers of the calls."""
        self.unwritten: Patched | None = None
        """A correction of the script that is written when the corrected one has repeated the record."""

    def add(self, record: Record) -> None:
        """Take down what happened next."""
        self.records.append(record)
        if isinstance(record, CallsAsked):
            self.calls.append(record)
        elif isinstance(record, Answers):
            self.answers.append(record)
        elif isinstance(record, Approved):
            self.approved.add(record.call)
            self.script = record.script or self.script
            if record.allowance is not None:
                self.allowances.append(record.allowance)
        elif isinstance(record, Slept):
            self.slept[record.call] = record.until
        elif isinstance(record, Medium):
            self.media.append(record)
        elif isinstance(record, End) and record.run == self.begin.run:
            self.end = record

    def corrected(self, patched: Patched) -> RecordedRun:
        """The run with another script. Calls after a skipped one have lower numbers in it."""
        skipped = {*patched.skipped}
        given = {reply.call: reply for reply in patched.replies if reply.call not in skipped}

        def number(call: int) -> int:
            return call - sum(each < call for each in skipped)

        found = RecordedRun(replace(self.begin, source=patched.source))
        found._keep_effects(self, skipped, given.keys(), number)
        for record in self.records:
            if isinstance(record, CallsAsked):
                calls = [(number(call), *rest) for call, *rest in record.calls if call not in skipped]
                if calls:
                    found.add(CallsAsked(calls=calls))  # type: ignore[arg-type]  # the rest is what it was
            elif isinstance(record, Answers):
                kept = [given.pop(each.call, each) for each in record.replies if each.call not in skipped]
                if kept:
                    found.add(Answers(replies=[replace(each, call=number(each.call)) for each in kept]))
            elif isinstance(record, Slept | Approved):
                if record.call not in skipped:
                    found.add(replace(record, call=number(record.call)))
            elif not isinstance(record, Begin | End):
                found.add(record)
        if given:
            found.add(Answers(replies=[replace(each, call=number(each.call)) for each in given.values()]))
        return found

    def _keep_effects(
        self, before: RecordedRun, skipped: Collection[int], given: Collection[int], number: Callable[[int], int]
    ) -> None:
        """Keep what the calls of the run before its correction have done, although the record says otherwise now."""
        replies = {reply.call: reply for group in before.answers for reply in group.replies} | before.replaced
        calls = {call.call: call for call in before.every_call()}
        gone = [(at, 0, call, reply) for at, call, reply in before.left_out]
        gone += [(at, 1, calls[at], replies.get(at)) for at in skipped]
        self.left_out = [(number(at), call, reply) for at, _, call, reply in sorted(gone, key=itemgetter(0, 1))]
        changed = {*before.replaced, *(at for at in given if at in replies and replies[at].status == "ok")}
        self.replaced = {number(at): replies[at] for at in changed - {*skipped}}

    def numbers(self, additions: Additions) -> list[int]:
        """The worker's numbers of its calls, in the order in which the Run counts them from 1."""
        return [item[0] for group in self.calls for item in group.calls if not additions.is_question(item[1])]

    @property
    def is_left_out(self) -> bool:
        """Whether a replay leaves it out: something from outside had stopped it, and how far it came is not known."""
        return self.end is None or not self.end.is_repeatable

    @property
    def repeats(self) -> bool:
        """Whether running it again gives nothing new: only its caller gets the Run."""
        return self.is_cut or self.end is not None

    @property
    def was_admitted(self) -> bool:
        """Whether the check had let it run: what its tools are today says nothing of it."""
        declined = self.script is not None and self.script.approval == "denied"
        return self.end is None or (self.end.outcome != "check" and not declined)

    @property
    def is_untouched(self) -> bool:
        """Whether nothing is known but that it began: a person may have been asked about its script."""
        return self.end is None and not self.calls

    def leave_out(self) -> None:
        """From now on, no replay runs it again."""
        self.end = End(run=self.begin.run, outcome="interrupted")

    def pending(self, toolbox: Toolbox, additions: Additions) -> tuple[PendingCall, ...]:
        """Calls that were asked for and have no answer."""
        answered = {reply.call for group in self.answers for reply in group.replies}
        asked = [item for group in self.calls for item in group.calls if not additions.is_question(item[1])]
        return tuple(self._pending(item, toolbox) for item in asked if item[0] not in answered)

    def every_call(self) -> tuple[PendingCall, ...]:
        """Its calls and questions, as they would be if they had no answer."""
        return tuple(self._pending(item, None) for group in self.calls for item in group.calls)

    def _pending(self, item: Item, toolbox: Toolbox | None) -> PendingCall:
        number, target, arguments = item
        space, _, name = target.partition(".")
        tool = toolbox.get(name) if toolbox is not None and space == "tools" else None
        waited = tool is not None and tool.policy == "approve" and number not in self.approved
        return PendingCall(
            run_id=self.begin.run,
            call=number,
            tool=name,
            arguments=arguments[0] if len(arguments) == 1 and isinstance(arguments[0], dict) else arguments,
            repeatable=waited or (tool is not None and tool.is_repeatable),
            key=call_key(self.begin.run, number),
        )


def read_runs(events: Iterable[list[Record]], *, resets: bool = True) -> list[RecordedRun]:
    """The runs since the Repl was last reset; all of them where resets do not matter."""
    runs: list[RecordedRun] = []
    for records in events:
        for record in records:
            if isinstance(record, Reset):
                if resets:
                    runs.clear()
            elif isinstance(record, Begin):
                if runs and runs[-1].end is None:  # what is written now would be taken for the later run's
                    runs[-1].leave_out()
                runs.append(RecordedRun(record))
            elif runs and isinstance(record, Patched):
                runs[-1] = runs[-1].corrected(record)
            elif runs and not isinstance(record, Environment):
                runs[-1].add(record)
    return runs


def refuse_interrupted(runs: Sequence[RecordedRun]) -> None:
    """A Repl whose latest run has no end is not used before that run is resumed or given up."""
    if runs and runs[-1].end is None:
        run = runs[-1].begin.run
        raise UsageError(
            f"run {run} of this Repl has not ended; continue it with resume({run!r}), "
            "or give it up with restore(…, abandon=True)"
        )


def decide(pending: tuple[PendingCall, ...], in_flight: Any) -> dict[int, CallResult | None]:
    """What calls without an answer get, by their numbers; None: the call is made again.

    Calls that are repeatable are made again. `in_flight` decides about the others: "retry", "fail", or a function that
    gives "retry", "fail" or an Answer for each. Raises InDoubt where nobody decides.
    """
    if in_flight not in (None, "retry", "fail") and not callable(in_flight):
        raise UsageError(f'in_flight must be "retry", "fail" or a function of a pending call, not {in_flight!r}')
    doubtful = tuple(call for call in pending if not call.repeatable)
    if doubtful and in_flight is None:
        listed = ", ".join(f"call {call.call} ({call.tool})" for call in doubtful[:10])
        raise InDoubt(
            f"{listed}: it may have been made before the crash, and its tool is neither read_only nor idempotent; "
            'pass in_flight="retry", "fail", or a function that decides for each call',
            doubtful,
        )
    return {call.call: _decided(call, in_flight(call) if callable(in_flight) else in_flight) for call in doubtful}


def decided_reply(call: PendingCall, answer: Any) -> RecordedReply:
    """What the record has of a call that a person has answered: with a value, or with an Answer."""
    wanted = answer if isinstance(answer, Answer) else Answer.value(answer)
    result = _decided(call, wanted)
    if result is None:
        raise UsageError(f"call {call.call} ({call.tool}) needs a value or an error for an answer, not {answer!r}")
    status, packed, error = result
    data = packed.data if packed is not None else pack(error_value(error, call.tool)).data if error else b""
    return RecordedReply(
        call=call.call,
        ok=error is None,
        data=data,
        status=status,
        error=call_error(error),
        tool=call.tool,
        arguments=call.arguments,
    )


def _decided(call: PendingCall, wanted: Any) -> CallResult | None:
    if wanted == "retry":
        return None
    if wanted == "fail":
        message = f"the host was restarted while {call.tool} was running; whether it took effect is not known"
        return "error", None, ToolError(message, code="in_doubt", tool=call.tool)
    if not isinstance(wanted, Answer):
        raise UsageError(f'in_flight must give "retry", "fail" or an Answer for a call, not {wanted!r}')
    return result_of(wanted)


def result_of(answer: Answer) -> CallResult | None:
    """What a call gets with this answer; None: its tool is invoked."""
    if answer.kind == "run":
        return None
    return ("error", None, tool_error(answer)) if answer.kind == "error" else ("ok", pack(answer.result), None)
