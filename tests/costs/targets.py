"""What the host does with what scripts, models, tools and documents send it: every target of the fuzzing."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from moonbox import Tool, Toolbox
from moonbox.audit.chain import check_chain
from moonbox.audit.jsonlines import line_links
from moonbox.audit.query import RunSummary
from moonbox.audit.records import Call, CallError, Run
from moonbox.audit.redaction import Redactor
from moonbox.audit.reports import timeline_text
from moonbox.codemode.catalog import make_catalog, rough_tokens
from moonbox.compact import short
from moonbox.errors import ScriptError
from moonbox.knowledge.extract.plain import decode, read_markdown, read_rst
from moonbox.knowledge.extract.reader import read_html
from moonbox.knowledge.search import parse_query
from moonbox.knowledge.text import chunk_text, clean
from moonbox.languages.registry import language
from moonbox.net.addresses import parse_target
from moonbox.runs.docs import Docs
from moonbox.scripts.hostapi.api import HostApi
from moonbox.secrets import SecretRedactor
from moonbox.suggest import nearest
from moonbox.tools.search import ToolSearch
from moonbox.tools.signature import render
from moonbox.values import pack, plain
from moonbox.wording import visible
from moonbox.worker.encoding import Decoder
from tests.costs import inputs
from tests.languages.lua.explain.bench import Bench

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from random import Random

    from moonbox.tools.signature import Level

    Make = Callable[[Random], Callable[[int], Any]]

__all__ = ["Target", "targets"]


@dataclass(frozen=True, slots=True)
class Target:
    """One function of the host, and a family of inputs for it."""

    name: str
    work: Callable[[Any], object]
    make: Make


def targets() -> tuple[Target, ...]:
    return (*_host_functions(), *_values(), *_schemas(), *_records(), *_languages(), *_documents(), *_tools())


# Host functions


def _host_functions() -> Iterator[Target]:
    api = HostApi(environ={})
    for name, function in sorted(api.functions.items()):
        if name.startswith(("fs.", "http.", "sleep")):  # these wait for the disk, the network or the clock
            continue
        for place, parameter in enumerate(function.parameters):
            make: Make = _TEXT if parameter.kind in ("data", "string") else inputs.value
            if parameter.kind == "options":
                make = _options(tuple(option.name for option in parameter.options))
            elif parameter.kind in ("integer", "number"):
                continue
            others = [_SAMPLES.get(other.name, "a") for other in function.parameters]
            yield Target(f"{name}({parameter.name})", partial(_call_host, api, name, others, place), make)


_SAMPLES: dict[str, Any] = {
    "text": "a b a b",
    "pattern": "a",
    "replacement": "$1",
    "options": {},
    "fields": {},
    "rows": [["a"]],
    "seconds": 0,
    "format": "%Y",
    "key": "k",
    "data": "d",
    "value": "v",
    "parts": {"host": "a"},
    "url": "https://a.example/?b=c",
}


def _TEXT(random: Random) -> Callable[[int], Any]:
    return inputs.text(random)


def _options(names: tuple[str, ...]) -> Callable[[Random], Callable[[int], Any]]:
    def make(random: Random) -> Callable[[int], Any]:
        name, grown = random.choice((*names, "unknown")), random.choice((inputs.text, inputs.value))(random)
        return lambda size: {name: grown(size)}

    return make


def _call_host(api: HostApi, name: str, others: list[Any], place: int, item: Any) -> None:
    arguments = list(others)
    arguments[place] = item
    if name.startswith("log."):  # logs are bounded for each script
        api = HostApi(environ={})
    api.call(name, arguments)


# Values, validation


def _values() -> Iterator[Target]:
    decoder = Decoder(500_000, max_depth=64)
    yield Target("decode(JSON)", lambda item: decoder.decode(_wire(item)), inputs.value)
    yield Target("decode(text)", lambda item: decoder.decode(item.encode("utf-8", "replace")), _TEXT)
    yield Target("pack", pack, inputs.value)
    yield Target("plain", plain, inputs.value)


def _wire(item: Any) -> bytes:
    return json.dumps(item, default=str).encode()


SCHEMAS: dict[str, dict[str, Any]] = {
    "any": {},
    "array of objects": {
        "type": "array",
        "items": {"type": "object", "properties": {"id": {"type": "integer"}}, "additionalProperties": False},
    },
    "map of numbers": {"type": "object", "additionalProperties": {"type": "number"}},
    "unions": {"anyOf": [{"type": "string", "pattern": "^(a|b)*$"}, {"type": "array", "items": {"type": "integer"}}]},
    "unique": {"type": "array", "uniqueItems": True},
    "names": {"type": "object", "propertyNames": {"maxLength": 5}, "patternProperties": {"^x": {"type": "null"}}},
    "choice": {"enum": ["red", "green", {"a": 1}]},
    "tree": {
        "$ref": "#/$defs/node",
        "$defs": {"node": {"type": ["array", "string"], "items": {"$ref": "#/$defs/node"}}},
    },
}


def _bind(tool: Tool, item: Any) -> None:
    tool.bind({"a": item})


def _schemas() -> Iterator[Target]:
    for name, schema in SCHEMAS.items():
        parameters = {"type": "object", "properties": {"a": schema}, "$defs": schema.get("$defs", {})}
        tool = Tool.from_schema(name="t", parameters=parameters, call=lambda arguments: None)
        yield Target(f"bind({name})", partial(_bind, tool), inputs.value)
        yield Target(f"bind({name}, text)", partial(_bind, tool), _TEXT)
    closed = Tool.from_schema(
        name="t",
        parameters={"type": "object", "properties": {"a": {}, "b": {}}, "additionalProperties": False},
        call=lambda arguments: None,
    )
    yield Target("bind(arguments)", closed.bind, inputs.value)
    returns = Tool.from_schema(name="t", call=lambda arguments: None, returns={"type": "object"})
    yield Target("result", returns.convert_result, inputs.value)
    yield Target("result(text)", returns.convert_result, _TEXT)


# Records


def _records() -> Iterator[Target]:
    redactor = Redactor(["password", "*token", "t.id"], secrets=["secret-1234", "hunter22"])
    yield Target("redact(value)", lambda item: redactor.redact(_run(item)), inputs.value)
    yield Target("redact(source)", lambda item: redactor.redact(_run({"password": "hunter-2"}, item)), _TEXT)
    yield Target("redact in steps", lambda item: redactor.in_steps().run(_run(item)), inputs.value)
    secrets = SecretRedactor()
    secrets.add("KEY", "secret-1234")
    yield Target("redact secrets(value)", secrets, inputs.value)
    yield Target("redact secrets(text)", secrets, _TEXT)
    yield Target("for_model(value)", lambda item: _run(item).for_model(), inputs.value)
    yield Target("for_model(text)", lambda item: _run(None, item).for_model(), _TEXT)
    yield Target("to_json", lambda item: Run.from_json(_run(item).to_json()), inputs.value)
    yield Target("short", lambda item: short(item, 200), inputs.value)
    yield Target("visible", visible, _TEXT)
    yield Target("summary", lambda item: RunSummary.of(_run(None, item)), _TEXT)
    yield Target("timeline", lambda item: timeline_text(_run(item, item)), _TEXT)
    yield Target("verify", _verified, _TEXT)


def _verified(text: str) -> None:
    check_chain(line_links(text.encode("utf-8", "replace").splitlines(keepends=True)), None)


def _run(item: Any, source: str = "return 1") -> Run:
    failed = CallError("bad", source[:5000], data=item, detail=source)
    calls = (Call(1, "t", {"x": item}, packed=pack(item)), Call(2, "t", {}, "error", error=failed))
    return Run("id", source, values=(item,), output=source, calls=calls, error=ScriptError("tool", source, data=item))


# Languages


def _languages() -> Iterator[Target]:
    yield Target("explain(Lua)", lambda item: Bench().run(item), inputs.lua)
    rhai, lua = language("rhai"), language("lua")
    from moonbox.languages.language import EngineError
    from moonbox.limits import Limits

    def explain(spoken: Any, kind: str, message: str, item: str) -> None:
        error = EngineError(kind, message, frames=(("script", 1, ""), ("script", 7, "f")))
        spoken.explain(error, sources={"script": item}, tools=("echo", "github.create_issue"), limits=Limits())

    for kind, message in (
        ("syntax", "script:3: unexpected symbol near '='"),
        ("runtime", "script:1: attempt to index a nil value (global 'x')"),
        ("runtime", "script:2: attempt to call a nil value (field 'ech')"),
    ):
        yield Target(f"explain(Lua, {message[9:]})", partial(explain, lua, kind, message), inputs.lua)
        yield Target(f"explain(Rhai, {kind})", partial(explain, rhai, kind, message), inputs.lua)
    yield Target("explain(message)", lambda item: explain(lua, "runtime", item, "x = 1"), _TEXT)


# Documents


def _documents() -> Iterator[Target]:
    yield Target("read_html", read_html, _TEXT)
    yield Target("read_markdown", read_markdown, _TEXT)
    yield Target("read_rst", read_rst, _TEXT)
    yield Target("decode", lambda item: decode(item.encode("utf-8", "replace")), _TEXT)
    yield Target("chunk_text", chunk_text, _TEXT)
    yield Target("clean", clean, _TEXT)
    yield Target("parse_query", parse_query, _TEXT)
    yield Target("parse_target", parse_target, _TEXT)
    yield Target("parse_target(http)", lambda item: parse_target("http://" + item), _TEXT)


# Tools


def _tools() -> Iterator[Target]:
    names = [f"tool_{number}" for number in range(200)]
    toolbox = Toolbox(
        [Tool.from_schema(name=name, description="Does it.", call=lambda arguments: None) for name in names]
    )
    search = ToolSearch(toolbox)
    texts = language("lua").texts
    yield Target("nearest", lambda item: nearest(item, names), _TEXT)
    yield Target("resolve", toolbox.resolve, _TEXT)
    yield Target("search", lambda item: search.search(item), _TEXT)
    yield Target("docs", lambda item: Docs(toolbox, {}, "lua", search=search).answer("search", [item]), _TEXT)
    levels: tuple[Level, ...] = ("brief", "signature", "full")
    for level in levels:
        yield Target(f"render({level})", partial(_render, _described, level), _TEXT)
        yield Target(f"render({level}, schema)", partial(_render, _with, level), inputs.value)
    yield Target(
        "catalog",
        lambda item: make_catalog(_box(item), texts, full_schemas=False, budget=8000, count=rough_tokens),
        lambda random: lambda size: [f"tool_{number}" for number in range(size // 10)],
    )
    yield Target(
        "catalog(description)",
        lambda item: make_catalog(
            Toolbox([_described(item)]), texts, full_schemas=True, budget=8000, count=rough_tokens
        ),
        _TEXT,
    )


def _render(make: Callable[[Any], Tool], level: Level, item: Any) -> str:
    return render(make(item), level)


def _described(text: str) -> Tool:
    properties = {"a": {"type": "string", "description": text}, "b": {"enum": [text[:100], 1]}}
    parameters = {"type": "object", "properties": properties}
    return Tool.from_schema(name="t", description=text, parameters=parameters, call=lambda arguments: None)


def _with(item: Any) -> Tool:
    names = [str(name)[:40] for name in item] if isinstance(item, dict) else [f"p{n}" for n in range(len(item))]
    parameters = {"type": "object", "properties": {name: {"type": "string", "default": "x"} for name in names}}
    return Tool.from_schema(name="t", parameters=parameters, call=lambda arguments: None)


def _box(names: list[str]) -> Toolbox:
    return Toolbox(
        [Tool.from_schema(name=name, description=f"Does {name}.", call=lambda arguments: None) for name in names]
    )
