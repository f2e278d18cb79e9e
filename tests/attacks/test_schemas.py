"""attack: schemas of servers and scripts that keep a validator busy, which holds the lock of all threads"""

from __future__ import annotations

import gc
import json
import random
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from moonbox import Sandbox, Tool
from moonbox.errors import MoonboxError, ToolError
from moonbox.tools.search import ToolSearch
from tests.long import times

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LONGEST_STOP = 0.05
"""Seconds of this process's processor time in which no other thread may run."""


class Watchdog:
    """A thread that looks how long it could not run, in processor time of the process: a busy machine adds nothing."""

    def __init__(self) -> None:
        self.longest = 0.0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def _watch(self) -> None:
        before = time.process_time()
        while not self._ended.wait(0.0005):
            now = time.process_time()
            self.longest, before = max(self.longest, now - before), now

    @contextmanager
    def watching(self) -> Iterator[Watchdog]:
        gc.freeze()  # the longer the tests run, the longer it takes to collect what is not of the schema
        self._thread.start()
        try:
            yield self
        finally:
            self._ended.set()
            self._thread.join()
            gc.unfreeze()


def chain(levels: int, keyword: str, leaf: Any, **more: Any) -> dict[str, Any]:
    """Each level looks at the value twice."""
    parts = {f"d{at}": {keyword: [{"$ref": f"#/$defs/d{at + 1}"}] * 2} for at in range(levels)}
    return {"$ref": "#/$defs/d0", "$defs": {**parts, f"d{levels}": leaf}, **more}


def nested(levels: int, keyword: str, **more: Any) -> dict[str, Any]:
    schema: Any = {"type": "integer"}
    for _ in range(levels):
        schema = {keyword: [schema], **more}
    return {"items": schema}


def mesh(size: int, keyword: str, *inside: str) -> dict[str, Any]:
    """Each schema refers to all others, at the same value or a step inside it."""
    parts: dict[str, Any] = {}
    for at in range(size):
        part: Any = {keyword: [{"$ref": f"#/$defs/d{other}"} for other in range(size) if other != at]}
        for step in inside:
            part = {step: part}
        parts[f"d{at}"] = part
    return {"$ref": "#/$defs/d0", "$defs": parts}


def ring(width: int, keyword: str, *inside: str) -> dict[str, Any]:
    """Two definitions that refer to each other many times: compiling them takes a validator seconds, or has no end."""
    many = [{"$ref": "#/$defs/b"}] * width
    part: Any = {keyword: many}
    for step in inside:
        part = {step: part}
    return {**part, "$defs": {"b": {"allOf": [{"$ref": "#/$defs/c"}] * width}, "c": {"$ref": "#/$defs/b"}}}


NAMES = [f"{number:06}" for number in range(5_000)]
ROWS = [[number, str(number)] for number in range(300)]
HUB: dict[str, Any] = {"$defs": {"x": {"properties": {name: {} for name in NAMES[:2_000]}}}}
MANY = {"anyOf": [{"maximum": 0}] * 900, "$comment": "each way to it costs 900 looks"}
DEEP = json.loads('{"a":' * 40 + "1" + "}" * 40)
UNIONS = ("allOf", "anyOf", "oneOf")
KNOWN: list[tuple[dict[str, Any], Any]] = [
    *((chain(20, keyword, {"type": kind}), 1) for keyword in UNIONS for kind in ("null", "integer")),
    ({"anyOf": [{"$ref": "#"}]}, {"a": 1}),
    ({"$defs": {name: {"$id": f"urn:{name}"} for name in NAMES[:900]}, "allOf": [{"$ref": "urn:1"}] * 900}, 1),
    ({"oneOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"anyOf": [{"$ref": "#"}]}}}, [1]),
    *((chain(11, keyword, {"type": "string"}), ROWS) for keyword in UNIONS),
    (chain(14, "allOf", {"properties": {"b": True}}, unevaluatedProperties=False), {"a": 1}),
    (chain(18, "allOf", {"items": True}, unevaluatedItems=False), [1]),
    (nested(14, "allOf", unevaluatedItems={"type": "integer"}), ROWS),
    ({"allOf": [{"$dynamicRef": "#n"}] * 900, "$defs": {"n": {"$dynamicAnchor": "n", **MANY}}}, 1),
    ({"items": {"allOf": [{"$ref": "#a"}] * 900}, "$defs": {"a": {"$anchor": "a", "enum": NAMES}}}, NAMES),
    ({"$id": "urn:x", "allOf": [{"$ref": "urn:x#/$defs/b"}] * 900, "$defs": {"b": MANY}}, 1),
    ({"$id": "urn:x", "allOf": [{"$ref": "b"}] * 900, "$defs": {"b": {"$id": "b", **MANY}}}, ROWS),
    ({"items": {"pattern": "^(?:(a|aa)(?=a|b|$))*\\1z"}}, ["a" * 60] * 300),
    ({"allOf": [{"pattern": f"^(?:(a|a)(?!x))*\\1z{at}"} for at in range(900)]}, "a" * 90),
    ({"pattern": "|".join(f"{name}.*x" for name in NAMES)}, "0" * 50_000),
    ({"allOf": [{"pattern": f"^\\p{{L}}{{1,{at}}}$"} for at in range(100)]}, "a"),
    ({"patternProperties": {f"{name}a*b": {"type": "string"} for name in NAMES[:2_000]}}, dict.fromkeys(NAMES, 1)),
    ({"pattern": "((((((a{9}){9}){9}){9}){9}){9}){9}"}, "a"),
    ({"items": {"dependentRequired": {name: ["a"] for name in NAMES[:3_000]}}}, [{"a": 1}] * 3_000),
    ({"items": {"enum": [{"a": "x" * 30, "b": name} for name in NAMES[:1_000]]}}, [{"a": "x" * 30, "b": ""}] * 3_000),
    ({"items": {"multipleOf": 1e-300}}, [1e300] * 3_000),
    ({"items": {"minimum": 10**4000}}, [10**4000] * 300),
    ({"anyOf": [{"items": {"type": "string"}}, {"type": "null"}]}, list(range(60_000))),
    ({"uniqueItems": True, "items": {"$ref": "#"}}, ROWS * 20),
    ({"properties": {"a": {"allOf": [{"$ref": "#"}, {"$ref": "#", "minProperties": 0}]}}}, DEEP),
    ({"if": {"$ref": "#/$defs/d0"}, "then": False, **chain(19, "anyOf", {"type": "null"})}, 1),
    ({"not": chain(19, "allOf", {"type": "integer"})} | {"$defs": chain(19, "allOf", {})["$defs"]}, 1),
    *((mesh(9, keyword), 1) for keyword in UNIONS),
    *((mesh(9, keyword, "items"), [[[[[1] * 3] * 3] * 3] * 3] * 3) for keyword in UNIONS),
    *((ring(24, keyword, *inside), [[1]]) for keyword in UNIONS for inside in ((), ("items",))),
    ({"allOf": [{"items": {"$ref": "#"}}] * 300 + [{"maximum": 9}] * 300}, [1] * 1_000),
    ({"allOf": [{"items": {"$ref": "#/$defs/a"}}] * 90, "$defs": {"a": {"items": {"$ref": "#"}}}}, ROWS),
    ({"pattern": "[" * 60_000}, "a"),
    *(({"pattern": atom * 1_000}, "a" * 50) for atom in ("\\s", "\\S", "\\d", "a\\W", "(?:\\w)", "\\cA" * 9)),
    *(({"pattern": look * 4_900}, "a" * 50) for look in ("(?=a)", "(?<=a)", "(?!b)", "(?<!b)", "(?=x)\\H\\N")),
    *(({"pattern": f"(?i){atom * 1_000}"}, "a" * 50) for atom in ("[à-\uffff]", "[^à]", "[\\u0000-\\uffff]")),
    *(({"pattern": pattern}, "a" * 50) for pattern in ("()" * 32_000, "\\W{9000}", "(?i)\\s{9000}")),
    *(({"pattern": f"(?i){atom * 9_900}"}, "a" * 50) for atom in ("[a&&b]", "[a--b]", "[a~~b]")),
    ({"patternProperties": {f"{name}\\s{name}\\d" * 20: {} for name in NAMES[:50]}}, {"a": 1}),
    ({"pattern": "\\cA\\d\\w" * 30 + "q" * 60_000}, "a"),
    ({"pattern": "\\p{" * 15_000}, "a"),
    ({"default": [1] * 9_000, "items": {"anyOf": [{"anyOf": [{"maximum": 0}] * 90}] * 90}}, [1]),
    ({"type": "object", "required": NAMES}, {}),
    ({"type": "object", **HUB, "items": {"prefixItems": [{"allOf": [{"$ref": "#/$defs/x"}]}] * 900}}, [[{}]]),
]  # fmt: skip


def answering(schema: Any, value: Any) -> list[Callable[[], Any]]:
    """What this schema and value are given to: parameters, results, and what prints and checks them."""

    def result() -> Any:
        tool = Tool.from_schema(name="f", call=lambda args: value, returns=schema, validate_result=True)
        return tool.convert_result(value)

    def argument() -> Any:
        properties = {"a": {key: rule for key, rule in schema.items() if key != "$defs"}}
        parameters = {"type": "object", "properties": properties, "$defs": schema.get("$defs", {})}
        return Tool.from_schema(name="f", call=lambda args: value, parameters=parameters).bind({"a": value})

    def script() -> Any:
        tool = Tool.from_schema(name="f", call=lambda args: 1, returns=schema)
        with Sandbox([tool], isolation="inline") as box:
            return box.run("local x = tools.f{} print(docs.describe('f')) return x.a.b, x[1].c, x.d")

    return [result, argument, script]


def stops_threads(schema: Any, value: Any) -> bool:
    """Whether other threads could not run for too long, three times of three: a busy machine may delay them too."""
    return all(stop(schema, value) >= LONGEST_STOP for _ in range(3))


def stop(schema: Any, value: Any) -> float:
    """The longest time in which other threads could not run."""
    with Watchdog().watching() as watchdog:
        for job in answering(schema, value):
            try:
                job()
            except MoonboxError:
                continue
    return watchdog.longest


@pytest.mark.parametrize(("schema", "value"), KNOWN, ids=lambda part: json.dumps(part)[:40])
def test_no_known_kind_of_schema_stops_other_threads(schema: Any, value: Any) -> None:
    assert not stops_threads(schema, value)


def schema_of(chance: random.Random) -> dict[str, Any]:
    """A schema of definitions that refer to one another in all ways that a validator follows."""
    count = chance.choice((3, 8, 20, 60))
    often = chance.choice((1, 2, 3, 20))

    def ref() -> dict[str, Any]:
        at = chance.randrange(count)
        return {chance.choice(("$ref", "$ref", "$dynamicRef")): chance.choice((f"#/$defs/d{at}", f"#a{at}"))}

    def part(depth: int = 0) -> Any:
        inner = ref() if depth > 1 or chance.random() < 0.5 else part(depth + 1)
        match chance.choice(KEYWORDS):
            case "allOf" | "anyOf" | "oneOf" | "prefixItems" as keyword:
                return {keyword: [inner] * often}
            case "properties" | "patternProperties" | "dependentSchemas" as keyword:
                return {keyword: dict.fromkeys(("a", "b", "^", "[ab]?")[: often + 1], inner)}
            case "rule":
                return chance.choice((*RULES, {"pattern": pattern_of(chance)}))
            case "if":
                return {"if": inner, "then": ref(), "else": ref()}
            case keyword:
                return {keyword: inner, **(part(depth + 1) if depth < 2 else {})}

    definitions = {f"d{at}": {"$anchor": f"a{at}", **part()} for at in range(count)}
    return {"$ref": "#/$defs/d0", "$defs": definitions}


def pattern_of(chance: random.Random) -> str:
    """Pieces of patterns, some of them many times."""
    made = "".join(chance.choices(PIECES, k=chance.choice((1, 2, 5, 20))))
    return made * min(chance.choice((1, 1, 20, 300, 3_000)), 1 + 20_000 // len(made))


def loops_of(chance: random.Random) -> dict[str, Any]:
    """A few definitions that most values fit, and that refer to one another at the same value or inside it."""
    count, copies = chance.choice((1, 2, 3, 5, 8)), chance.choice((1, 1, 2, 3, 30))

    def part(depth: int = 0) -> Any:
        if depth > 2 or chance.random() < 0.25:
            return {"$ref": f"#/$defs/d{chance.randrange(count)}"}
        match chance.choice((*UNIONS, "items", "prefixItems", "properties", "additionalProperties", "rule", "items")):
            case "rule":
                return chance.choice(({"minProperties": 0}, {"minLength": 0}, {"not": {"type": "null"}}))
            case "properties":
                return {"properties": {name: part(depth + 1) for name in "abc"[: chance.choice((1, 2, 3))]}}
            case "items" | "additionalProperties" as keyword:
                return {keyword: part(depth + 1)}
            case keyword:
                return {keyword: [part(depth + 1) for _ in range(chance.choice((1, 2, 3)))] * (1 if depth else copies)}

    return {"$ref": "#/$defs/d0", "$defs": {f"d{at}": part() for at in range(count)}}


PIECES = (
    *("\\s", "\\d", "\\w", "\\W", "\\b", "\\cA", "\\p{L}", "\\P{Lu}", "\\u00e9", "\\1", ".", "a", "é", "|", "^", "$"),
    *(
        "(",
        ")",
        "(?:",
        "(?=",
        "(?!",
        "(?<=",
        "(?>",
        "(?<n>",
        "(?i)",
        "(?s)",
        "*",
        "+?",
        "++",
        "?",
        "{2}",
        "{1,9}",
        "{99}",
    ),
    *("[a-z]", "[^à-ü]", "[\\w-]", "[^\\s]", "[à-\uffff]", "[", "]", "[[:alpha:]]", "[a&&b]"),
)
KEYWORDS = [
    *("allOf", "anyOf", "oneOf", "not", "if", "items", "prefixItems", "contains", "properties", "patternProperties"),
    *("additionalProperties", "propertyNames", "dependentSchemas", "unevaluatedItems", "unevaluatedProperties"),
    *("rule", "allOf", "anyOf"),
]
RULES: list[dict[str, Any]] = [
    *({"type": kind} for kind in ("integer", "string", "object", "array")),
    *(
        {"uniqueItems": True},
        {"enum": NAMES[:50]},
        {"required": NAMES[:200]},
        {"multipleOf": 0.01},
        {"const": ROWS[:9]},
    ),
    *({"pattern": "^(a|aa)+$"}, {"pattern": "^(?:(a|a)(?!x))*\\1z"}, {"pattern": "^\\w{1,200}x$"}, {"maxLength": 3}),
]


def value_of(chance: random.Random) -> Any:
    """A value of up to a few thousand parts, deep or wide."""
    value: Any = chance.choice((1, "a" * 40, 1.5, None))
    for _ in range(chance.choice((1, 3, 12))):
        copies = chance.choice((1, 1, 2, 9))
        value = [value] * copies if chance.random() < 0.5 else dict.fromkeys(("a", "b", "c")[:copies], value)
        if len(json.dumps(value)) > 20_000:
            break
    return value


@pytest.mark.parametrize("seed", range(times(40)))
def test_no_made_up_schema_stops_other_threads(seed: int) -> None:
    chance = random.Random(seed)
    while len(json.dumps(schema := schema_of(chance))) > 64_000:
        pass
    assert not stops_threads(schema, value_of(chance))


@pytest.mark.parametrize("seed", range(times(40)))
def test_no_made_up_pattern_stops_other_threads(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(2):
        text = "".join(chance.choices(("a", "é", "A", "0", " ", "\n", "😀"), k=chance.choice((1, 30, 3_000))))
        assert not stops_threads({"pattern": (pattern := pattern_of(chance))}, text)
        assert not stops_threads({"patternProperties": {pattern: {"type": "string"}}}, {text: 1})


@pytest.mark.parametrize("seed", range(times(40)))
def test_no_made_up_loop_stops_other_threads(seed: int) -> None:
    chance = random.Random(seed)
    while len(json.dumps(schema := loops_of(chance))) > 64_000:
        pass
    assert not stops_threads(schema, value_of(chance))


def test_text_with_many_marks_on_one_letter_stops_no_thread() -> None:
    marks = "e" + "\u0301\u0316" * 15_000
    tool = Tool.from_schema(name="f", call=lambda args: 1, parameters={"properties": {"a": {"description": marks}}})
    with Watchdog().watching() as watchdog:
        assert ToolSearch([tool]).search("f")
    assert watchdog.longest < LONGEST_STOP


def test_a_result_is_not_validated_against_a_schema_above_the_bounds() -> None:
    schema = chain(20, "allOf", {"type": "object", "required": ["b"]})
    odd = Tool.from_schema(name="odd", call=lambda args: {"a": 1}, returns=schema, validate_result=True)
    with Sandbox([odd]) as box:
        run = box.run("return tools.odd{}.a")
    assert (run.value, [str(note) for note in run.notes]) == (
        1,
        ["the result of odd was not validated: its schema nests too many alternatives within alternatives"],
    )


def test_schemas_that_refer_to_themselves_judge_alike() -> None:
    tree = {"type": "object", "properties": {"id": {"type": "integer"}, "of": {"items": {"$ref": "#/$defs/Tree"}}}}
    either: dict[str, Any] = {
        "anyOf": [
            {"properties": {"op": {"const": "not"}, "left": {"$ref": "#/$defs/Either"}}, "required": ["op"]},
            {"properties": {"op": {"const": "and"}, "left": {"$ref": "#/$defs/Either"}}, "required": ["op"]},
            {"type": "integer"},
        ]
    }
    for name, part, right, wrong in (
        ("Tree", tree, {"id": 1, "of": [{"id": 2, "of": [{}]}]}, {"of": [{"of": [{"id": "x"}]}]}),
        ("Either", either, {"op": "not", "left": {"op": "and", "left": 3}}, {"op": "and", "left": {"op": "or"}}),
        ("Self", {"allOf": [{"$ref": "#/$defs/Self"}, {"type": "integer"}]}, 1, "x"),
    ):
        schema = {"type": "object", "properties": {"a": {"$ref": f"#/$defs/{name}"}}, "$defs": {name: part}}
        tool = Tool.from_schema(name="f", call=lambda args: 1, parameters=schema)
        assert tool.bind({"a": right}) == {"a": right}
        with pytest.raises(MoonboxError, match=r"invalid arguments for f:\n- a"):
            tool.bind({"a": wrong})


def test_a_value_that_leads_two_ways_into_the_same_schema_is_coerced_once() -> None:
    both = {"properties": {"a": {"allOf": [{"$ref": "#/$defs/B"}, {"$ref": "#/$defs/B"}]}}}
    tool = Tool.from_schema(
        name="f", call=lambda args: 1, parameters={"properties": {"b": {"$ref": "#/$defs/B"}}, "$defs": {"B": both}}
    )
    assert tool.bind({"b": DEEP}) == {"b": DEEP}


def test_a_large_result_is_validated_in_pieces() -> None:
    row = {"anyOf": [{"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}] * 20}
    schema = {
        "type": "object",
        "properties": {"rows": {"type": "array", "items": {"$ref": "#/$defs/Row"}}},
        "$defs": {"Row": row},
    }
    tool = Tool.from_schema(name="f", call=lambda args: None, returns=schema, validate_result=True)
    rows: list[Any] = [{"id": number} for number in range(40_000)]
    assert tool.convert_result({"rows": rows}) == {"rows": rows}
    with pytest.raises(ToolError, match="does not fit its declared type"):
        tool.convert_result({"rows": [*rows, {}]})
