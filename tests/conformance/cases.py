"""The shared cases: Lua scripts with their expectations, attacks, and Rhai scripts compared with the reference host."""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moonbox import Tool, Toolbox
from moonbox.values import to_jsonable
from tests.attacks.test_attacks import AFTERWARDS
from tests.script_cases import Case, Step, case_tools, read_case

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from moonbox import Limits, Run
    from tests.conformance.hosts import Host, Session

TESTS = Path(__file__).parents[1]
LUA_FOLDERS = {
    "lua": TESTS / "scripts" / "lua",
    "lua errors": TESTS / "scripts" / "lua" / "errors",
    "attacks": TESTS / "attacks",
}
RHAI_FOLDER = TESTS / "scripts" / "rhai"
NULLS = TESTS / "scripts" / "nulls.toml"
GROUPS = (*LUA_FOLDERS, "nulls", "rhai")
_ENOUGH_SECONDS = 200
"""What a case that is not about time may take: on a busy machine too, what it is about must end it."""
_RHAI_NEXT = re.compile(r"^// next run\n", re.MULTILINE)
_LEAST = {"max_string": 64, "max_array": 1, "max_depth": 1, "max_operations": 1}
_RHAI_LIMITS = re.compile(r"^// limits: (.*)$", re.MULTILINE)


@dataclass(frozen=True)
class SharedCase:
    """One case of one group."""

    group: str
    stem: str

    @property
    def name(self) -> str:
        return f"{self.group}/{self.stem}"

    def play(self, host: Host, reference: Host) -> list[str]:
        """What differs from what it must be; empty when the host passes."""
        raise NotImplementedError


@dataclass(frozen=True)
class LuaCase(SharedCase):
    """A script with its expectations at its head."""

    path: Path

    def play(self, host: Host, reference: Host) -> list[str]:
        return _play_lua(read_case(self.path), host, attack=self.group == "attacks")


@dataclass(frozen=True)
class RhaiCase(SharedCase):
    """A script that must give what it gives in the reference host."""

    source: str
    limits: Mapping[str, int]

    def play(self, host: Host, reference: Host) -> list[str]:
        return _play_rhai(self.source, self.limits, host, reference)


@dataclass(frozen=True)
class NullCase(SharedCase):
    """What becomes of nulls that a tool returned, in one language."""

    language: str
    source: str
    value: Any
    sent: list[Any]

    def play(self, host: Host, reference: Host) -> list[str]:
        with host.open(self.language, [], {}, check=False, tools="nulls") as session:
            run = session(self.source)
        if run.error is not None:
            return [str(run.error)]
        sent = [to_jsonable(call.arguments["value"]) for call in run.calls if call.tool == "sent"]
        pairs = {"value": (to_jsonable(run.value), self.value), "sent": (sent, self.sent)}
        return [f"{name}: {seen!r}, not {wanted!r}" for name, (seen, wanted) in pairs.items() if seen != wanted]


def shared_cases(groups: tuple[str, ...] = GROUPS) -> list[SharedCase]:
    """Those that every host can be asked for."""
    cases: list[SharedCase] = []
    for group in groups:
        if group == "nulls":
            cases += _null_cases()
        elif group == "rhai":
            cases += [_rhai_case(path) for path in sorted(RHAI_FOLDER.glob("*.rhai"))]
        else:
            cases += [LuaCase(group, path.stem, path) for path in sorted(LUA_FOLDERS[group].glob("*.lua"))]
    return cases


def _rhai_case(path: Path) -> RhaiCase:
    text = path.read_text(encoding="utf-8")
    limits: dict[str, int] = {}
    if head := _RHAI_LIMITS.search(text):
        wanted = {name: value for name, value in json.loads(head[1]).items() if name in _LEAST}
        limits = {name: max(value, _LEAST[name]) for name, value in wanted.items()}
    return RhaiCase("rhai", path.stem, text, limits)


def _null_cases() -> Iterator[NullCase]:
    """One for each language; the tool `decoded` returns what the case's own tool `given` returns."""
    for name, case in tomllib.loads(NULLS.read_text(encoding="utf-8")).items():
        sent = [json.loads(case["sent"])] if "sent" in case else []
        calls = {
            "lua": ("tools.given{}", f"tools.decoded{{text = [==[{case['given']}]==]}}"),
            "rhai": ("given()", f"decoded(#{{text: {json.dumps(case['given'])}}})"),
        }
        for language, (before, after) in calls.items():
            source = case[language].replace(before, after)
            yield NullCase("nulls", f"{name} in {language}", language, source, json.loads(case["value"]), sent)


def conformance_tools() -> dict[str, Toolbox]:
    """Those that the cases of a language call, by its name; and those of the cases about nulls."""
    text = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
    nulls = [
        Tool.from_schema(name="decoded", parameters=text, call=lambda given: json.loads(given["text"])),
        Tool.from_schema(name="sent", parameters={"type": "object"}, call=lambda given: None),
    ]
    return {"lua": case_tools(), "rhai": _rhai_tools(), "nulls": Toolbox(nulls)}


def _rhai_tools() -> Toolbox:
    """Those of Lua's cases, and those that Rhai's cases call beside them."""

    value = {"type": "object", "properties": {"value": {}}}
    issue = {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}
    added: list[tuple[str, str | None, dict[str, Any], Callable[[dict[str, Any]], Any]]] = [
        ("later", None, value, lambda given: [given["value"]]),
        ("nothing", None, {"type": "object"}, lambda given: None),
        ("create_issue", "hub", issue, lambda given: {"title": given["title"], "number": 7}),
        ("list", "hub.deep", {"type": "object"}, lambda given: []),
    ]
    tools = case_tools()
    for name, space, parameters, call in added:
        tools.add(Tool.from_schema(name=name, namespace=space, parameters=parameters, call=call))
    return tools


def _play_lua(case: Case, host: Host, *, attack: bool) -> list[str]:
    with host.open("lua", sorted(case.features), asdict(_patient(case)), check=case.check) as session:
        if attack:
            session("kept = 'kept'")
        differences = []
        lost = False
        for step in case.steps:
            run = session(step.source)
            lost = lost or run.state_lost
            differences += _differences(step, run, host)
        if attack:
            differences += _aftermath(session, case, lost)
        return differences


def _patient(case: Case) -> Limits:
    about_time = any(step.wanted()["error"] == "limit time" for step in case.steps)
    return case.limits if about_time else replace(case.limits, timeout=_ENOUGH_SECONDS)


def _aftermath(session: Session, case: Case, lost: bool) -> list[str]:
    """An attack must not spoil the next run."""
    run = session(AFTERWARDS, asdict(replace(case.limits, max_output=1000, timeout=_ENOUGH_SECONDS)))
    kept = ("nil" if lost else "kept") + '\t[1,{"a":null}]\n'
    if run.error is not None:
        return [f"afterwards: {run.error}"]
    return [] if run.output == kept and len(run.values) == 7 else ["afterwards: another output"]


def _differences(step: Step, run: Run, host: Host) -> list[str]:
    """Where a run differs from its step's head."""
    wanted, seen = step.wanted(), step.seen(run)
    if host.name not in ("process", "inline"):  # JavaScript has one kind of number
        wanted["values"], seen["values"] = (list(map(_one_number, side["values"])) for side in (wanted, seen))
    differences = [f"{key}: {seen[key]!r}, not {wanted[key]!r}" for key in wanted if seen[key] != wanted[key]]
    if run.error is not None:
        differences += step.error_differences(run.error)
    return differences


def _one_number(text: str) -> str:
    return json.dumps(json.loads(text, parse_float=_number, parse_int=_number), sort_keys=True, ensure_ascii=False)


def _number(text: str) -> float | int:
    """A whole number as an integer where a script's integers reach, else as a float."""
    value = float(text)
    exact = int(text) if text.lstrip("-").isdigit() else int(value) if value.is_integer() else None
    return exact if exact is not None and -(2**63) <= exact < 2**63 else value


def _play_rhai(source: str, own_limits: Mapping[str, int], host: Host, reference: Host) -> list[str]:
    limits = {"timeout": _ENOUGH_SECONDS, "max_operations": 5_000_000, "max_tool_calls": 1000, **own_limits}
    sides = []
    for each in (reference, host):
        with each.open("rhai", [], limits, check=False) as session:
            sides.append([_facts(session(step)) for step in _RHAI_NEXT.split(source)])
    theirs_all, mine_all = sides
    return [
        f"{key} of step {number}: {mine[key]!r}, not {theirs[key]!r}"
        for number, (theirs, mine) in enumerate(zip(theirs_all, mine_all, strict=True), 1)
        for key in theirs
        if mine[key] != theirs[key]
    ]


def _facts(run: Run) -> dict[str, Any]:
    """What must be the same in every host."""
    error = run.error
    facts = ("kind", "limit", "message", "line", "column", "hint")
    return {
        "values": [_one_number(json.dumps(to_jsonable(value))) for value in run.values],
        "output": run.output,
        "error": None if error is None else [getattr(error, name) for name in facts],
        "calls": _calls(run),
        "operations": run.usage.operations,
        "state_lost": run.state_lost,
    }


def _calls(run: Run) -> list[tuple[str, str]]:
    """The calls and what became of them. One that is made beside a call that fails may be answered before the failure
    is, and is cancelled otherwise."""
    failed = {call.batch for call in run.calls if call.status == "error"}
    beside = {"ok": "ok or cancelled", "cancelled": "ok or cancelled"}
    return [
        (call.tool, beside.get(call.status, call.status) if call.batch in failed else call.status) for call in run.calls
    ]
