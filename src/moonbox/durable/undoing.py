"""Undoing: the calls of a run are taken back in reverse order, by calls of a run of its own, which is recorded too."""

from __future__ import annotations

from collections.abc import Mapping
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from msgspec import Struct, msgpack

from moonbox.durable.recorded import read_runs
from moonbox.durable.recovery import find_recorded, undoing_of
from moonbox.errors import UsageError
from moonbox.tools.tool import Tool

if TYPE_CHECKING:
    from moonbox.audit.records import Run
    from moonbox.durable.store import Journal
    from moonbox.limits import Limits
    from moonbox.runs.events import RecordedReply
    from moonbox.tools.toolbox import Toolbox

LABEL = "undoes"
"""The label of a run that undoes another one, whose id it has."""
_SCRIPT = "for _, step in ipairs(steps) do tools[step.tool](step.arguments) end"


class UndoStep(Struct, frozen=True, kw_only=True):
    """One call of a run, and how it is taken back."""

    call: int
    """Its number in the Run; 0 for one that was made and that a correction has left out."""
    tool: str
    arguments: Any
    undo: str = ""
    """The tool that takes it back."""
    given: dict[str, Any] = {}
    """The arguments of that tool."""
    why_not: str = ""
    """Why it cannot be taken back."""


class Undone(Struct, frozen=True, kw_only=True):
    """What became of undoing a run."""

    run: Run
    """The run that has undone it. It stops at the first call that fails; `undo` again goes on with that call."""
    undone: tuple[UndoStep, ...]
    left: tuple[UndoStep, ...]
    """What can be taken back and was not."""
    impossible: tuple[UndoStep, ...]


class Undoing:
    """The undoing of one run of a journal."""

    def __init__(self, journal: Journal, run_id: str, toolbox: Toolbox) -> None:
        self._journal = journal
        self._run_id = run_id
        self._id = undoing_of(run_id)
        self._toolbox = toolbox
        known = journal.known(run_id)
        if not known.has_ended:
            raise UsageError(f"run {run_id!r} has not ended ({known.state}): what it goes on to do would not be undone")
        self.tools: dict[str, Tool] = {}
        """The tools that take calls back, under names of their own."""
        _, _, recorded = find_recorded(journal, run_id)
        replies = {reply.call: reply for group in recorded.answers for reply in group.replies if reply.status}
        replies |= recorded.replaced
        asked = [call for call in recorded.every_call() if call.call in replies or call.tool in toolbox]
        made = [(call.call, at, call, replies.get(call.call)) for at, call in enumerate(asked, start=1)]
        made += [(number, 0, call, reply) for number, call, reply in reversed(recorded.left_out)]
        made.sort(key=itemgetter(0), reverse=True)
        steps = [self._step(at, call.tool, call.arguments, reply) for _, at, call, reply in made]
        self.plan: tuple[UndoStep, ...] = tuple(step for step in steps if step is not None)
        """The calls that have changed something, the latest first."""

    @property
    def possible(self) -> tuple[UndoStep, ...]:
        return tuple(step for step in self.plan if step.undo)

    def ended(self, run: Run) -> Undone:
        """What became of it; the journal says so of the run."""
        done = sum(call.status == "ok" for call in run.calls)
        possible = self.possible
        result = Undone(
            run=run,
            undone=possible[:done],
            left=possible[done:],
            impossible=tuple(step for step in self.plan if not step.undo),
        )
        self._journal.mark_undone(self._run_id, "partly" if result.left or result.impossible else "yes")
        return result

    def way(self, in_flight: Any, limits: Limits) -> tuple[str, tuple[Any, ...], dict[str, Any]]:
        """The method of a Sandbox with `tools` that undoes what can be undone, and what it is called with.

        It begins at the start, or where an earlier attempt ended.
        """
        earlier = self._journal.look_up(self._id)
        steps = self.possible
        if earlier is None:
            given = [{"tool": step.undo, "arguments": step.given} for step in steps]
            limits = limits.replace(max_tool_calls=max(1, len(steps)), timeout=None)
            options = {"run_id": self._id, "inputs": {"steps": given}, "limits": limits}
            return "run", (_SCRIPT,), {**options, "labels": {LABEL: self._run_id}}
        if earlier.state == "ok":
            self._journal.mark_undone(self._run_id, "partly" if len(steps) < len(self.plan) else "yes")
            raise UsageError(f"run {self._run_id!r} was undone by run {self._id!r}")
        if not earlier.has_ended:
            return "resume", (self._id, in_flight), {}
        run = read_runs(self._journal.read(earlier.repl), resets=False)[-1]
        calls = [reply for group in run.answers for reply in group.replies if reply.status]
        failed = (len(calls),) if calls and calls[-1].status != "ok" else ()
        return "patch", (self._id, _SCRIPT, in_flight), {"skip": failed}  # the failed call is made, not repeated

    def _step(self, at: int, name: str, arguments: Any, reply: RecordedReply | None) -> UndoStep | None:
        """None for a call that has changed nothing."""
        if reply is not None:  # a person may have edited the arguments
            name, arguments = reply.tool, reply.arguments
        tool = self._toolbox.get(name)
        if tool is not None and tool.hints.read_only:
            return None
        failed = "" if reply is None or reply.error is None else reply.error.code
        if reply is None or reply.status in ("timeout", "cancelled") or failed in ("timeout", "in_doubt"):
            why = "it is not known whether it took effect"
        elif reply.status != "ok":
            return None
        elif tool is None:
            why = "it is no tool of this Sandbox"
        elif tool.undo is None:
            why = "its tool has no undo"
        else:
            undo = self._undo_of(tool)
            given, why = ({}, f"there is no tool {tool.undo!r}") if undo is None else _given(undo, reply)
            if undo is not None and not why:
                return UndoStep(call=at, tool=name, arguments=arguments, undo=undo.name, given=given)
        return UndoStep(call=at, tool=name, arguments=arguments, why_not=why)

    def _undo_of(self, tool: Tool) -> Tool | None:
        name = f"undo_{tool.path.replace('.', '_')}"
        if name not in self.tools:
            undo = self._toolbox.get(tool.undo) if isinstance(tool.undo, str) else tool.undo
            if undo is None:
                return None
            if not isinstance(undo, Tool):
                undo = Tool.from_function(undo, name=name)
            self.tools[name] = undo.with_(name=name, namespace=None)
        return self.tools[name]


def _given(undo: Tool, reply: RecordedReply) -> tuple[dict[str, Any], str]:
    """The arguments for the tool that takes a call back, by the names of its parameters, or why there are none.

    `arguments` and `result` are those of the call; other names are looked for in its result, then in its arguments.
    """
    result = msgpack.decode(reply.data)
    known: dict[str, Any] = {}
    for part in (reply.arguments, result):
        if isinstance(part, Mapping):
            known |= {str(name): value for name, value in part.items()}
    known |= {"arguments": reply.arguments, "result": result}
    names = undo.parameters.get("properties", {})
    missing = [name for name in undo.parameters.get("required", ()) if name not in known]
    if missing:
        return {}, f"neither its arguments nor its result have {missing[0]!r}, which its undo needs"
    return {name: known[name] for name in names if name in known}, ""
