"""What people have allowed for the rest of a run or Repl, and the question about a whole script."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec import Struct

from moonbox.runs.decisions import Decision, ToolCall
from moonbox.tools.tool import changed_parts, fingerprint

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moonbox.findings import Finding
    from moonbox.runs.record import RunRecord
    from moonbox.tools.tool import Tool
    from moonbox.tools.toolbox import Toolbox

_MOST = 100
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Allowance(Struct, frozen=True, kw_only=True):
    """A decision "always": of which tool, as it was defined then, and of which run, where it is for one run."""

    tool: str
    definition: dict[str, str]
    decision: Decision
    run: str = ""


class Allowances:
    """The allowances of one Repl: the latest of each tool, and the scripts that may run again."""

    def __init__(self) -> None:
        self._kept: dict[str, list[Allowance]] = {}

    def find(self, call: ToolCall) -> tuple[Decision | None, tuple[str, ...]]:
        """The decision that covers the call; else the parts of the tool's definition that changed since one did."""
        kept, now = self._kept.get(call.tool, []), definition_of(call)
        for each in reversed(kept):
            if each.definition == now and each.run in ("", call.run_id) and each.decision.covers(call.arguments):
                return each.decision, ()
        before = kept[-1].definition if kept and call.definition is not None else now
        return None, changed_parts(before, now)

    def add(self, call: ToolCall, decision: Decision) -> Allowance:
        """Keep what a person said about a call."""
        run = call.run_id if decision.scope == "run" else ""
        kept = Allowance(tool=call.tool, definition=definition_of(call), decision=decision, run=run)
        self.keep(kept)
        return kept

    def keep(self, kept: Allowance) -> None:
        others = [each for each in self._kept.get(kept.tool, []) if each != kept]
        self._kept[kept.tool] = [*others, kept][-_MOST:]


def definition_of(call: ToolCall) -> dict[str, str]:
    """A hash for each part of what a person's decision may rest on."""
    if call.definition is not None:
        return fingerprint(call.definition)
    from hashlib import sha256  # slow to load, and most programs have no use for it

    text = sha256(call.source.encode("utf-8", "surrogatepass")).hexdigest()
    return {"script": text, **{tool.path: str(sorted(fingerprint(tool).items())) for tool in call.named}}


def script_question(record: RunRecord, toolbox: Toolbox, language: str, findings: tuple[Finding, ...]) -> ToolCall:
    """The question whether a script may run."""
    return ToolCall(
        kind="script",
        tool="script",
        definition=None,
        arguments={"script": record.source},
        index=0,
        run_id=record.id,
        repl_id=record.repl_id,
        source=record.source,
        language=language,
        context=record.context,
        labels=record.labels,
        named=named_tools(record.source, toolbox, toolbox.aliases()),
        findings=findings,
    )


def named_tools(source: str, toolbox: Toolbox, aliases: Mapping[str, str]) -> tuple[Tool, ...]:
    """The tools whose names are in the script's text, by path or alias; one that builds names may call others too."""
    words = set(_WORD.findall(source))

    def is_named(tool: Tool) -> bool:
        return any(words.issuperset(name.split(".")) for name in (tool.path, aliases.get(tool.path, tool.path)))

    return tuple(tool for tool in toolbox if is_named(tool))
