"""What people and middleware see of a call, what they may decide, and what they have allowed for later calls."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from moonbox.errors import UsageError
from moonbox.tools.tool import Tool, changed_parts, fingerprint
from moonbox.values import from_jsonable, to_jsonable

if TYPE_CHECKING:
    from moonbox.findings import Finding
    from moonbox.runs.record import RunRecord
    from moonbox.tools.toolbox import Toolbox

_NUMBERS = ("maximum", "minimum")
_RULES: dict[str, Any] = {"const": object, "enum": list | tuple, **dict.fromkeys(_NUMBERS, int | float)}
_MOST_KEPT = 100
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Decision(Struct, frozen=True):
    """A person's word on a call."""

    kind: Literal["allow", "always", "edit", "deny"]
    reason: str = ""
    """Why. The script gets it if the call is refused."""
    arguments: Mapping[str, Any] | None = None
    by: str = ""
    """Who decided, for the trail."""
    when: Mapping[str, Mapping[str, Any]] | None = None
    """Of "always": which later calls it covers, by their arguments: `{"cents": {"maximum": 10000}}`. See `always`."""
    scope: Literal["repl", "run"] = "repl"
    """Of "always": whether it holds for the Repl, or only for the run."""

    def __post_init__(self) -> None:
        for name in ("reason", "by"):
            if not isinstance(getattr(self, name), str):
                raise UsageError(f"`{name}` of a Decision must be a string, not {getattr(self, name)!r}")
        if self.scope not in ("repl", "run"):
            raise UsageError(f"`scope` of a Decision must be 'repl' or 'run', not {self.scope!r}")
        _check_rule(self.when)

    @classmethod
    def always(
        cls,
        *,
        when: Mapping[str, Mapping[str, Any]] | None = None,
        scope: Literal["repl", "run"] = "repl",
        by: str = "",
        reason: str = "",
    ) -> Decision:
        """Allow this call, and later calls of the same tool, as long as its definition stays.

        With `when`, only those whose arguments fit: `const` (equal), `enum` (one of), `maximum`, `minimum`.
        Arguments that it does not name may be anything.
        """
        return cls("always", reason, by=by, when=when, scope=scope)

    def covers(self, arguments: Any) -> bool:
        """Whether it holds for a later call with these arguments."""
        if not self.when:
            return True
        if not isinstance(arguments, Mapping):
            return False
        return all(name in arguments and _fits(arguments[name], rule) for name, rule in self.when.items())

    def to_dict(self) -> dict[str, Any]:
        """For a journal."""
        given = {name: getattr(self, name) for name in ("arguments", "when") if getattr(self, name) is not None}
        data = {"kind": self.kind, "reason": self.reason, "by": self.by, **to_jsonable(given)}
        return data if self.scope == "repl" else {**data, "scope": self.scope}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Decision:
        """The inverse."""
        given = from_jsonable({name: data[name] for name in ("arguments", "when") if data.get(name) is not None})
        known = {name: data[name] for name in ("reason", "by", "scope") if name in data}
        return cls(data["kind"], **known, **given)

    @classmethod
    def of(cls, answer: Any) -> Decision:
        """Understand what an approve callback returned."""
        if isinstance(answer, Decision):
            return answer
        if answer is True or answer == "allow":
            return cls("allow")
        if answer is False or answer is None or answer == "deny":
            return cls("deny")
        if answer == "always":
            return cls("always")
        raise UsageError(
            f"approve must return True, False, 'allow', 'deny', 'always' or one of call.allow(), call.deny(reason), "
            f"call.always(), call.edit(arguments); not {answer!r}"
        )


class Answer(Struct, frozen=True):
    """What a call is answered with instead of running its tool."""

    kind: Literal["value", "error", "run"]
    result: Any = None
    message: str = ""
    code: str = "tool_error"
    retryable: bool = False
    data: Any = None

    @classmethod
    def value(cls, result: Any) -> Answer:
        """Answer with this result, as if the tool had returned it."""
        return cls("value", result)

    @classmethod
    def error(cls, message: str, *, code: str = "tool_error", retryable: bool = False, data: Any = None) -> Answer:
        """Answer with a failure, as if the tool had raised it."""
        return cls("error", message=message, code=code, retryable=retryable, data=data)

    @classmethod
    def run(cls) -> Answer:
        """Let moonbox run the tool itself."""
        return cls("run")


class ToolCall(Struct, frozen=True, kw_only=True):
    """A call as middleware, approve callbacks and step-by-step callers see it."""

    tool: str
    """The path of the tool, as in `Call.tool`, or the name of a function added with `define`; "script" for a script."""
    definition: Tool | None
    """The tool itself; None for a function."""
    arguments: Mapping[str, Any]
    index: int
    run_id: str
    repl_id: str
    result: Any = None
    """Only for `after`."""
    id: int = 0
    """How step-by-step callers name it in their answers."""
    source: str = ""
    """The script that makes the call; empty for a direct call."""
    language: str = ""
    changed: tuple[str, ...] = ()
    """For `approve`: the parts of the tool's definition that changed since the person said "always" about it."""
    context: Mapping[str, Any] = {}
    """What the tool finds as `Context.extra`."""
    labels: Mapping[str, str] = {}
    """The labels of the run."""
    kind: Literal["call", "script"] = "call"
    """script: the question is whether `arguments["script"]` may run, before anything has; edit it by that name."""
    named: tuple[Tool, ...] = ()
    """The tools that the script names."""
    findings: tuple[Finding, ...] = ()
    """What the check of the script found."""
    question: str = ""
    """For `approve`: the id under which the journal keeps the question; empty without a journal."""

    def with_arguments(self, arguments: Mapping[str, Any]) -> ToolCall:
        """From `before`: go on with these arguments (they are validated again)."""
        return replace(self, arguments=dict(arguments))

    def with_result(self, result: Any) -> ToolCall:
        """From `after`: give the script this instead."""
        return replace(self, result=result)

    def answer(self, result: Any) -> Answer:
        """From `before`: give the script this and do not run the tool."""
        return Answer.value(result)

    def refuse(self, reason: str) -> Decision:
        """From `before`: do not run the tool; the script sees the reason."""
        return Decision("deny", reason)

    def allow(self, *, by: str = "", reason: str = "") -> Decision:
        """Let the call go on. `by` and `reason` are for the trail: who decided, and why."""
        return Decision("allow", reason, by=by)

    def always(
        self,
        *,
        when: Mapping[str, Mapping[str, Any]] | None = None,
        scope: Literal["repl", "run"] = "repl",
        by: str = "",
        reason: str = "",
    ) -> Decision:
        """Allow this call, and later ones: see `Decision.always`. A script: while its tools stay."""
        return Decision.always(when=when, scope=scope, by=by, reason=reason)

    def edit(self, arguments: Mapping[str, Any], *, by: str = "", reason: str = "") -> Decision:
        """Allow it with other arguments."""
        return Decision("edit", reason, dict(arguments), by)

    def deny(self, reason: str = "", *, by: str = "") -> Decision:
        """Refuse the call; the script gets the reason."""
        return Decision("deny", reason, by=by)


class Middleware(Struct, frozen=True):
    """Callables around every tool call, sync or async."""

    before: Callable[[ToolCall], Any | Awaitable[Any]] | None = None
    after: Callable[[ToolCall], Any | Awaitable[Any]] | None = None


def effect(tool: Tool) -> str:
    """What a tool does to the world, in one word, as far as it says so."""
    return "reads" if tool.hints.read_only else "destroys" if tool.hints.destructive else "changes"


def about_script(call: ToolCall) -> list[str]:
    """The tools that a script names and what its check found, in lines of text."""
    named = ", ".join(f"{tool.path} ({effect(tool)})" for tool in call.named) or "none"
    return [f"tools that it names: {named}", *(f"line {found.line}: {found.message}" for found in call.findings)]


def _check_rule(when: Any) -> None:
    if when is None:
        return
    if not isinstance(when, Mapping) or not all(isinstance(rule, Mapping) and rule for rule in when.values()):
        example = '{"cents": {"maximum": 100}}'
        raise UsageError(f"`when` must have a rule for each argument, such as {example}; not {when!r}")
    for name, rule in when.items():
        for key, value in rule.items():
            if key not in _RULES or not isinstance(value, _RULES[key]) or (key in _NUMBERS and isinstance(value, bool)):
                raise UsageError(
                    f"`when`: {name!r} has an invalid rule {key}: {value!r}; possible are {', '.join(_RULES)}"
                )


def _fits(value: Any, rule: Mapping[str, Any]) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if ("maximum" in rule and not (is_number and value <= rule["maximum"])) or (
        "minimum" in rule and not (is_number and value >= rule["minimum"])
    ):
        return False
    written = _written(value)
    return ("const" not in rule or written == _written(rule["const"])) and (
        "enum" not in rule or any(written == _written(each) for each in rule["enum"])
    )


def _written(value: Any) -> str:
    """A value as text: `True` and `1` differ, and so do `1` and `"1"`."""
    return json.dumps(to_jsonable(value), sort_keys=True)


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
        self._kept[kept.tool] = [*others, kept][-_MOST_KEPT:]


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
