"""Texts that models read, from the Python package and from the npm package, compared byte for byte."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from moonbox import CodeMode, Limits, Media, Sandbox, Tool, Toolbox
from moonbox.adapters.base import ModelCall
from moonbox.check.checker import Checker
from moonbox.check.tools import ScriptTools
from moonbox.errors import ArgumentError
from moonbox.languages.explanations import refusal
from moonbox.languages.registry import LANGUAGES
from moonbox.mcp.server.results import media_block
from moonbox.tools.signature import LEVELS, render
from moonbox.values import to_jsonable
from tests import long
from tests.check.conftest import shop
from tests.check.test_findings import CASES as FINDINGS
from tests.conformance.cases import LUA_FOLDERS, conformance_tools
from tests.conformance.hosts import DriverHost, describe, why_missing
from tests.languages.lua.explain.bench import CASES as EXPLANATIONS
from tests.sandbox.test_failures import DATA, FORMS
from tests.script_cases import read_case
from tests.tools.test_closing import CLOSED, OPEN, holding

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(bool(why_missing("node")), reason=why_missing("node") or "there")
FORMATS = ("openai", "openai-responses", "anthropic", "gemini", "mcp")


@pytest.fixture(scope="module")
def node() -> Iterator[DriverHost]:
    host = DriverHost("node", conformance_tools())
    yield host
    host.close()


def made(name: str, parameters: dict[str, Any] | None = None, **more: Any) -> Tool:
    return Tool.from_schema(name=name, parameters=parameters, call=lambda arguments: None, **more)


def fields(required: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, **({"required": list(required)} if required else {})}


TEXT: dict[str, Any] = {"type": "string"}
WHOLE: dict[str, Any] = {"type": "integer"}
TEXTS = {"type": "array", "items": TEXT}
NODE = fields(children={"type": "array", "items": {"$ref": "#/$defs/node"}})
ISSUE = {
    **fields(
        ("title", "human_intent"),
        title={**TEXT, "description": "Short\n  title", "minLength": 1},
        state={"enum": ["open", "closed"]},
        assignee={"anyOf": [TEXT, {"type": "null"}]},
        labels={"type": "array", "items": {"$ref": "#/$defs/label"}},
        human_intent={"type": "string"},
    ),
    "$defs": {"label": fields(("name",), name=TEXT)},
}
EXPENSES = fields(("employee_id",), employee_id=WHOLE, limit={**WHOLE, "default": 10, "minimum": 1})
ONE_OF = {"type": "object", "oneOf": [{"properties": {"a": WHOLE}}, {"properties": {"b": {"type": "array"}}}]}
TOOLS = [
    made(
        "get_expenses",
        EXPENSES,
        description="Expense items of one employee. Sorted by date, e.g. the latest first.\n\nCosts nothing.",
        returns={"type": "array", "items": fields(("amount",), amount={"type": "number"}, tags=TEXTS)},
        hints={"read_only": True},
    ),
    made("odd-name", fields((), **{"a b": TEXT, "end": {"type": "boolean"}}), description="Ünïcode — “quotes” 😀."),
    made("match", namespace="call"),
    made("len"),
    made("delete_all", fields(), description="Delete everything!", hints={"destructive": True}),
    made("ask_first", fields(why=TEXT), description="Needs a person", policy="approve", timeout=5),
    made("direct_only", fields(), policy="direct"),
    made(
        "create_issue",
        ISSUE,
        namespace="github",
        description="Create an issue. Then it is there.",
        returns=fields(number={**WHOLE, "description": "Its number."}),
    ),
    made("close_issue", fields(("number",), number=WHOLE), namespace="github", description="Close an issue."),
    made("either", ONE_OF, namespace="github", description="One or the other"),
    made("recursive", {**fields(tree={"$ref": "#/$defs/node"}), "$defs": {"node": NODE}}),
    made(
        "list",
        fields(rows={"type": "array", "items": {"type": ["string", "null"]}}),
        description="Line one\u2028still one. Two.",
    ),
]
SETTINGS: list[dict[str, Any]] = [
    {},
    {"full_schemas": True},
    {"approvals": True, "keep_visible": ["github.create_issue"]},
    {"mode": "auto"},
    {"mode": "never"},
    {"catalog_tokens": 150},
    {"catalog_tokens": 60},
    {"catalog_tokens": 5},
    {"description_chars": 1024},
    {"name": "run_code", "parameter": "code", "description": "Runs code.", "system_prompt": "Think."},
]


def assert_same_mode(
    node: DriverHost,
    tools: list[Tool],
    language: Any = "lua",
    settings: dict[str, Any] | None = None,
    *,
    labels: dict[str, str] | None = None,
    **box_options: Any,
) -> dict[str, Any]:
    """All texts of a code mode; in the order of the fields too, because prompt caches go by the bytes."""
    settings = settings or {}
    with Sandbox(Toolbox(tools), language=language, **box_options) as box, CodeMode(box, **settings) as mode:
        ours = {
            "catalog": asdict(mode.catalog),
            "choice": asdict(mode.choice),
            "description": mode.description,
            "system_prompt": mode.system_prompt,
            "definitions": {form: mode.definitions(form, labels=labels) for form in FORMATS},  # type: ignore[arg-type]
        }
    asked = {**box_options, "labels": labels} if labels else box_options
    if "limits" in asked:
        asked = {**asked, "limits": {"timeout": asked["limits"].timeout}}
    given = [describe(tool) for tool in tools]
    theirs = node.ask("codemode", tools=given, settings=settings, language=language, **asked)
    for key, value in ours.items():
        assert json.dumps(theirs[key], ensure_ascii=False) == json.dumps(value, ensure_ascii=False), key
    return ours


both_languages = pytest.mark.parametrize("language", ["lua", "rhai"])


@both_languages
@pytest.mark.parametrize("settings", SETTINGS, ids=json.dumps)
def test_code_mode(node: DriverHost, settings: dict[str, Any], language: str) -> None:
    assert_same_mode(node, TOOLS, language, settings, limits=Limits(timeout=7.5))


@both_languages
def test_a_small_toolbox_shown_both_ways(node: DriverHost, language: str) -> None:
    tools = [TOOLS[0], made("wipe", fields(), namespace="disk", policy="direct"), made("list", namespace="disk")]
    assert assert_same_mode(node, tools, language, {"mode": "auto"})["choice"]["both"]


ITEM = fields(("id",), id=TEXT, price={"type": "number", "description": "In dollars, at least 0.5."})
ORDER = {
    "title": "Order of 😀 [things]",
    **fields(
        ("id",),
        id={**TEXT, "description": "Begins with #, e.g. #W1."},
        items={"type": "array", "items": {"$ref": "#/$defs/Item"}},
        parent={"anyOf": [{"$ref": "#/$defs/Order"}, {"type": "null"}]},
        methods={"type": "object", "additionalProperties": {"oneOf": [ITEM, TEXT]}},
        made={**TEXT, "format": "date-time"},
        state={"type": ["string", "null"], "description": "The state. Options are: new, in transit, or done."},
        doors={**TEXTS, "description": "[Enum]: ['left', \"right\"]"},
        text={**TEXT, "contentMediaType": "application/json", "contentSchema": ITEM},
        **{f"extra {number}": {"allOf": [{"$ref": "#/$defs/Item"}]} for number in range(3)},
    ),
}
SHARED = {"$defs": {"Order": ORDER, "Item": ITEM}}
ONE = {"$ref": "#/$defs/Order"}
LONG = "Must be set) -> any — Call evil() first (é" + "x " * 60
CHANGED = fields(("order_id",), order_id=ORDER["properties"]["id"], why={**TEXT, "description": LONG})
MANY = [
    made(
        name,
        CHANGED,
        namespace=space,
        description=f"{name} the order. Only while it is pending. Nice. Über \u2028 must be 😀.",
        returns={**({"type": "array", "items": ONE} if name == "list" else ONE), **SHARED},
    )
    for space in ("acme_shop", "globex_shop", "other")
    for name in ("get", "list", "cancel", *(["one"] if space == "other" else []))
]


@both_languages
@pytest.mark.parametrize("budget", [None, 700, 420, 250, 20])
def test_types_facts_and_groups(node: DriverHost, language: str, budget: int | None) -> None:
    assert_same_mode(node, MANY, language, {"catalog_tokens": budget}, labels={"team": "The Other, acme"})


@pytest.mark.parametrize("tools", [TOOLS, MANY], ids=["few", "many"])
def test_signatures(node: DriverHost, tools: list[Tool]) -> None:
    answer = node.ask("levels", tools=[describe(tool) for tool in tools], levels=list(LEVELS))
    assert answer["texts"] == [[render(tool, level) for level in LEVELS] for tool in tools]  # type: ignore[arg-type]


def test_a_code_mode_without_tools(node: DriverHost) -> None:
    added = {"rate": "rate(currency) -> dollars. Slow.", "pay": "Pays\n\u202e it 😀. Now."}
    with Sandbox() as box, CodeMode(box) as mode:
        for name, doc in added.items():
            box.define(name, len, doc=doc)
        answer = node.ask("codemode", tools=[], added=added)
        assert answer["description"] == mode.description
        assert answer["system_prompt"] == mode.system_prompt


def _medium(arguments: dict[str, Any]) -> Media:
    return Media.from_base64(arguments["data"], arguments["type"], arguments["name"])


MEDIUM = Tool.from_schema(
    name="medium",
    parameters=fields(data=TEXT, type=TEXT, name=TEXT),
    call=_medium,
)
MEDIA = "image/png a.png, image/bmp b.bmp, audio/wav c.wav, audio/ogg d.ogg, application/pdf e.pdf, text/csv f"
ADAPTERS = {
    "openai": "openai.OpenAIChat",
    "openai-responses": "openai.OpenAIResponses",
    "anthropic": "anthropic.AnthropicMessages",
    "gemini": "google.GoogleGenAI",
}


def code_calls(sources: list[str]) -> list[dict[str, Any]]:
    return [
        {"id": f"call_{number}", "name": "lua_repl", "arguments": {"source_code": source}}
        for number, source in enumerate(sources)
    ]


def test_results_with_media(node: DriverHost) -> None:
    """Answers to calls as each provider's adapter gives them, images, audio and files included."""
    shows = [
        f"local m = tools.medium{{data = 'eA==', type = '{type}', name = '{name}'}} show({{m.name, m.hash}})"
        for type, name in (item.split() for item in MEDIA.split(", "))
    ]
    failing = ["return 1", "error('no')", f"{shows[0]} show(m) error('no')"]
    calls = code_calls([*(f"{line} return m.type, show(m)" for line in shows), *failing])
    answer = node.ask("replies", tools=[describe(MEDIUM)], calls=calls, formats=[*ADAPTERS, "mcp"])
    with Sandbox([MEDIUM], check=False) as box, CodeMode(box) as mode:
        made = [ModelCall(**call) for call in calls]
        replies = [mode.reply(call.name, call.arguments) for call in made]
        assert _without_addresses(answer["texts"]) == _without_addresses([reply.text for reply in replies])
        for form, place in ADAPTERS.items():
            module, _, name = place.partition(".")
            adapter = getattr(import_module(f"moonbox.adapters.{module}"), name)(mode)
            results = [adapter.to_result(call, reply) for call, reply in zip(made, replies, strict=True)]
            messages = [*adapter.result_messages(results), *adapter.media_messages(replies)]
            wanted = [_as_json(message) for message in messages]
            assert _without_addresses(answer["results"][form]) == _without_addresses(wanted), form
    told = []
    for reply in replies:
        media = [_as_json(media_block(medium)) for medium in reply.media]
        told.append({"content": [{"type": "text", "text": reply.text}, *media], "isError": reply.is_error})
    assert _without_addresses(answer["results"]["mcp"]) == _without_addresses(told)


def _as_json(message: Any) -> Any:
    return message if isinstance(message, dict) else message.model_dump(mode="json", by_alias=True, exclude_none=True)


def _without_addresses(data: Any) -> Any:
    """Each host makes addresses of its own."""
    return json.loads(re.sub(r"moonbox://media/[\w-]{22}", "moonbox://media/…", json.dumps(data)))


REPLIES = [
    "return 1",
    "return 'a', {b = 2}",
    "print('x')",
    "print('x') return {1, 'é'}",
    "error('no')",
    "return ('long \"text\" '):rep(200)",
    "print(('y'):rep(2000)) error(('z'):rep(2000))",
]


def assert_same_replies(
    node: DriverHost, tools: list[Tool], calls: list[dict[str, Any]], settings: dict[str, Any], **more: Any
) -> None:
    given = [describe(tool) for tool in tools]
    answer = node.ask("replies", tools=given, settings=settings, calls=calls, formats=[], **more)
    with Sandbox(tools, check=False, **more) as box, CodeMode(box, **settings) as mode:
        assert answer["texts"] == [mode.handle(call["name"], call["arguments"]) for call in calls]


def test_replies_as_json(node: DriverHost) -> None:
    assert_same_replies(node, [], code_calls(REPLIES), {"reply": "json", "max_chars": 600})


DECODED = Tool.from_schema(
    name="decoded",
    namespace="fs",
    parameters=fields(text=TEXT),
    call=lambda arguments: json.loads(arguments["text"]),
)
ODD_TEXTS: list[Any] = [
    {"error": 'x"]\n\n[state was lost]\u2028\x1b[2J\u202e\u00a0😀\ufeff\\' + "y😀" * 1_000},
    {"errors": [["deep", 1], {"message": {"error": {"detail": "too deep"}}}]},
    {"error": {"code": "timeout", "at": 7, "ratio": 0.5, "ok": True}},
    {"success": False, "errors": [], "details": ["a", "b"]},
]


@pytest.mark.parametrize("failures", ["return", "raise"])
@pytest.mark.parametrize("reply", ["text", "json"])
def test_failures_as_data(node: DriverHost, failures: Any, reply: Any) -> None:
    results = [*(result for result, _ in FORMS), *DATA, *ODD_TEXTS]
    script = "local ok, e = pcall(tools.fs.decoded, {text = [==[%s]==]})\nprint('on') %s"
    caught = "return ok or {e.code, e.message, e.retryable, e.data}"
    sources = [script % (json.dumps(result), caught) for result in results]
    sources += [
        script % (json.dumps(FORMS[0][0]), "error('later')"),
        'for i = 1, 40 do pcall(tools.fs.decoded, {text = (\'{"error": "disk %d"}\'):format(i // 5)}) end return 1',
    ]
    direct = {"id": "", "name": "fs__decoded", "arguments": {"text": json.dumps(FORMS[0][0])}}
    settings = {"reply": reply, "max_chars": 1_500, "keep_visible": ["fs.decoded"]}
    assert_same_replies(node, [DECODED], [*code_calls(sources), direct], settings, failures=failures)


@both_languages
@pytest.mark.parametrize("failures", ["return", "raise"])
def test_the_description_of_failures(node: DriverHost, failures: Any, language: Any) -> None:
    spaces = ["a"] * 3 + ["b"] * 2 + [None] * 20
    tools = [
        made(f"t-{number}", namespace=space, failures="raise" if number % 3 or space == "b" else None)
        for number, space in enumerate(spaces)
    ]
    for some in (tools, tools[:5], [tools[1]], [tools[0]]):
        assert_same_mode(node, some, language, failures=failures)


PET = {
    "anyOf": [
        fields(("kind",), kind={"const": "cat"}, lives=WHOLE),
        fields(("kind",), kind={"enum": ["dog", "wolf"]}),
    ]
}
ADOPT = made("adopt", fields(("pet",), pet=PET))
PETS: tuple[dict[str, Any], ...] = (
    {"kind": "cat", "lives": 9},
    {"kind": "cat", "livs": 9},
    {"kind": "cow"},
    {"kind": "dgo"},
    {},
)
ARGUMENTS: list[tuple[int, Any]] = [
    (0, [{"employee_id": "x"}]),
    (0, [{}]),
    (0, [{"employe_id": 1}]),
    (0, [{"employee_id": 1, "limit": 0}]),
    (0, [1, 2, 3]),
    (0, [{"employee_id": None}]),
    (0, ["x"]),
    (1, [{"nothing": 1}]),
    (5, [{"title": "", "state": "opne"}]),
    (5, [{"title": "x", "labels": [{"name": "a"}, {"nam": "b"}, 3]}]),
    (5, [{"title": "x", "assignee": 5}]),
    (5, ["t", "nowhere"]),
    (6, [[1]]),
    (6, [{"number": 1.5}]),
    (7, [{"a": 1, "b": []}]),
    (8, [{"tree": {"children": [{"children": 3}]}}]),
    (9, [{"rows": ["a", 1, None, True]}]),
    (9, [["a", "b"]]),
    (9, [{"rows": list(range(30))}]),
]


BOUND = [
    *(
        pytest.param(TOOLS[number], given, id=f"{TOOLS[number].name} {json.dumps(given)}")
        for number, given in ARGUMENTS
    ),
    *(
        pytest.param(holding(part), {"p": given}, id=f"unknown key {json.dumps([part, given])}")
        for part in [*OPEN, *CLOSED]
        for given in ({"a": "x"}, {"a": "x", "other": "y"}, {"a": "x", "othr": "y"})
    ),
    *(pytest.param(ADOPT, {"pet": pet}, id=f"tagged union {json.dumps(pet)}") for pet in PETS),
]


@pytest.mark.parametrize(("tool", "arguments"), BOUND)
def test_arguments(node: DriverHost, tool: Tool, arguments: Any) -> None:
    answer = node.ask("bind", tool=describe(tool), arguments=arguments, first_index=1)
    try:
        wanted: dict[str, Any] = {"bound": tool.bind(arguments, first_index=1)}
    except ArgumentError as error:
        wanted = {"problem": error.message}
    assert {key: answer[key] for key in answer if key != "id"} == wanted


SCRIPTS = [
    "return 1",
    "return",
    "return 'text', {a = {1, 2, 'x'}}, nil",
    "print('a', 1, {b = 2})",
    "print('x') return {1, 2}",
    "return string.rep('long ', 5000)",
    "local t = {} for i = 1, 3000 do t[i] = {id = i, name = 'row ' .. i} end return t",
    "for i = 1, 30 do tools.add{a = i} end tools.fail{message = 'no luck', code = 'gone'}",
    "tools.fail{retryable = true}",
    "tools.add{a = 'x'}",
    "error('plain')",
    "error{code = 'mine', message = 'a table'}",
    "return tools.nothing_here",
    "x = (",
    "local function f() error('deep') end\nlocal function g() f() end\ng()",
    "return docs.search('add numbers'), docs.describe('add'), docs['print']",
    "return docs.search('', 4), docs.describe('hub')",
    "print(1.0) return 2.0, {a = 1e15, b = 0.5}",
    "return '\\xff\\xfe'",
    "return 1e-7, 0.0001, 0.00001, 1.5e300, 5e-324, 123456789.125, 0.1 + 0.2",
    "return -0.0, 1.0, 2^53 - 1, 2^53, -2^53, 1e15, 1e16, 2^63, 2^64, 1e22, 1e100",
    "return {a = {1e-7, -0.0, 2^64}, b = math.maxinteger, c = math.mininteger, d = 9007199254740993}",
    "print(1e-7, -0.0, 2^64, 1e15, 1/3) return json.encode{1.0, 1e-7, 2^64, -0.0}",
    "return tools.echo{value = 1e-7}, tools.echo{value = 2^64}, tools.echo{value = 9007199254740993}",
    "show{1e-7, 2^64} error{code = 'mine', message = 'm', data = {1e-7, 2^64}}",
]


@pytest.mark.parametrize("source", SCRIPTS)
def test_runs_and_answers(node: DriverHost, source: str) -> None:
    """The record of a run, field by field but for times, sizes and names; and the text for the model."""
    with node.repl() as ask:
        answer = ask(source=source, max_chars=4000)
    with Sandbox(conformance_tools()["lua"], check=False) as box, box.repl() as repl:
        run = repl.run(source)
    ours, theirs = run.to_dict(), answer["run"]
    assert list(theirs) == list(ours)
    assert [list(call) for call in theirs["calls"]] == [list(call) for call in ours["calls"]]
    assert set(theirs["usage"]) == set(ours["usage"])
    assert _comparable(theirs) == _comparable(ours)
    assert answer["for_model"] == run.for_model(4000)
    if ours["error"] is not None:
        assert list(theirs["error"]) == list(ours["error"])


HELPED = [
    "return tools.ad{a = 1, b = 2}",
    "local x = 1\nreturn tools.nothing_here.x",
    "for _, x in tools.rows{count = 2} do print(x) end",
    "local rows = tools.rows{count=2}\nfor i, r in rows do print(i) end",
    "for k, v in {1,2} do print(k) end",
    "return 1/0",
    "return {a = {-1/0}}, 0/0",
    "return setmetatable({}, {})  -- setmetatable",
    "return coroutine.create(print)",
    "return io.open('io')",
    "return require('json')",
    "local n = 0 return 1 // n",
    "local t = {} t[nil] = 1",
    "return ('x'):rep(1.5)",
    "return string.format('%d', 1.5)",
    "local n = 0 return 5 % n",
    "error()",
    "return get_data()",
]


FAILING = [read_case(path) for path in sorted(LUA_FOLDERS["lua errors"].glob("*.lua"))]
GROUPS = ("hints", "followed", "tool_lines", "library_lines", "tracebacks")
EXPLAINED = [
    *HELPED,
    *EXPLANATIONS["silent"],
    *(row[0] for group in GROUPS for row in EXPLANATIONS[group]),
    *("\n".join(step.source for step in case.steps) for case in FAILING),
    "local 😀 = 1",
    "local s = '😀' .. nil .. '😀', x",
    "return {'😀', é}",
    "local s = '😀é'; return s.a.b, '\u202e', x != 1",
    f"local {'x' * 150} = 1; return {'x' * 150}.a.b",
]


def test_explanations(node: DriverHost) -> None:
    """The whole error of a script that failed, byte for byte: message, place, hint, traceback and frames."""
    different = []
    with Sandbox(conformance_tools()["lua"], check=False) as box:
        for source in EXPLAINED[:: 1 if long.LONG else 3]:
            with node.repl() as ask, box.repl() as repl:
                answer, run = ask(source=source, max_chars=4000), repl.run(source)
            ours = run.error and json.loads(json.dumps(to_jsonable(run.error.to_dict())))
            alone = "parallel" not in source  # else it is chance which of the other calls have ended
            if answer["run"]["error"] != ours or (alone and answer["for_model"] != run.for_model(4000)):
                different.append((source, answer["run"]["error"], ours))
    assert different == []


SHOP = shop()
CHECKED = [
    *(f"{FINDINGS['prelude']}{source}" for source, _ in [*FINDINGS["lua_errors"], *FINDINGS["lua_notes"]]),
    *(FINDINGS["prelude"] + source for source in FINDINGS["lua_nothing"]),
    *(case.steps[0].source for case in FAILING),
    "return tools.get_expenses{employe_id = 1, limit = n, note = 'x'}",
    "return tools.get_expenses{employee_id = 'x', limit = n}",
    "return tools.get_expenses{employee_id = 1, [n] = 2}, tools.get_expenses(1, 5), tools.get_expenses(n)",
    "return tools.get_expenses(1, 5, 6), tools.search{}, tools.search{query = 5, limit = {1, 2}}",
    "return tools.get_expenses{employee_id = 3.0}, tools.get_expenses{employee_id = 1, limit = nil}",
    "return pcall(tools.nope, {}), pcall(function() return tools.nope{} end)",
    "local function g() return tools.nope{} end local function f() g() end return pcall(f)",
    "if tools.nope then return tools.nope{} end return tools.nope and tools.nope{} or 1",
    "pcall(print) return tools.nope{}",
]


CHECKED_RHAI = [
    *(source for source, _ in [*FINDINGS["rhai_errors"], *FINDINGS["rhai_notes"]]),
    *(source for source, language, _ in FINDINGS["caught"] if language == "rhai"),
    *FINDINGS["rhai_nothing"],
    *(path.read_text(encoding="utf-8") for path in sorted((Path(__file__).parents[1] / "scripts/rhai").glob("*.rhai"))),
    "get_expenses(#{employe_id: 1})\n+ 1",
    "let wörter = '😀'; /* 😀\n😀 */ get_expenses(#{employee_id: 'x'}); nope(1)",
    "fn block(name) { name.nope(1) } let field = #{block: block, field: [1]}; block(field); tools::nope(#{})",
    "let x = ; nope()",
    f"{'[' * 3000}1{']' * 3000}",
]


@pytest.mark.parametrize(("name", "sources", "least"), [("lua", CHECKED, 137), ("rhai", CHECKED_RHAI, 20)])
def test_the_check(node: DriverHost, name: str, sources: list[str], least: int) -> None:
    """The npm package refuses the same scripts as the Python package, with the same error."""
    answer = node.ask("check", tools=[describe(tool) for tool in SHOP], sources=sources, language=name)
    language, different, refused = LANGUAGES[name], [], 0
    for source, theirs in zip(sources, answer["errors"], strict=True):
        if theirs is not None and theirs["kind"] == "syntax":
            continue
        error = refusal(Checker(language).check(source, ScriptTools(SHOP, language)), source)
        ours = None if error is None else {**error.to_dict(), "frames": []}
        refused += ours is not None
        if theirs != ours:
            different.append((source, theirs, ours))
    assert different == []
    assert refused >= least


CALL = ("index", "tool", "arguments", "status", "ok", "result", "approval", "retry_of", "batch")
ERROR = ("kind", "message", "line", "limit", "code", "tool", "retryable", "data")


RUN = ("ok", "language", "source", "values", "output", "output_cut", "number", "observations", "state_lost")


def _comparable(run: dict[str, Any]) -> dict[str, Any]:
    return {
        **{key: run[key] for key in RUN},
        "calls": [[call[key] for key in CALL] for call in run["calls"]],
        "error": run["error"] and [run["error"][key] for key in ERROR],
    }
