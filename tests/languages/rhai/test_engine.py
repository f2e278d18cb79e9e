"""Rhai in the engine: syntax errors as reports, scripts that are only checked, texts that need more lines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from moonbox.languages.lua.vm import LuaVM
from moonbox.languages.registry import language
from moonbox.languages.rhai import language as language_of_rhai
from moonbox.languages.rhai.language import COMPILER, RUNTIME, runtime_source
from moonbox.limits import Limits

if TYPE_CHECKING:
    from moonbox.languages.engine import EngineReport

HOST_FILES = {"compiler": ["outline"], "runtime": []}
_EMPTY: dict[str, Any] = {"tools": [], "functions": [], "values": [], "features": []}


@pytest.fixture
def engine() -> LuaVM:
    engine = LuaVM()
    engine.set_limits(Limits().to_dict())
    engine.configure({**_EMPTY, "runtime": runtime_source().encode()})
    return engine


def _report(report: EngineReport) -> tuple[str, str, dict[str, object]]:
    extra = json.loads(report.extra)
    return report.kind, report.message.decode(), {key: extra.get(key) for key in ("line", "column", "hint")}


_BAD = (
    "syntax",
    "Syntax error: 'null' is a reserved keyword (line 2, position 9)",
    {"line": 2, "column": 9, "hint": "Rhai has no null: the empty value is ()"},
)


def test_a_run_reports_what_does_not_compile(engine: LuaVM) -> None:
    report = engine.run(b"let x = 1;\nlet y = null;", 1, 0)
    assert _report(report) == _BAD
    assert report.operations == 0
    assert engine.globals() == b"[]"


def test_a_check_reports_the_same_and_runs_nothing(engine: LuaVM) -> None:
    assert _report(engine.check(b"let x = 1;\nlet y = null;")) == _BAD
    assert engine.check(b"let x = 1; print(x);").kind == "ok"
    assert engine.globals() == b"[]"


def test_a_script_is_checked_before_its_first_statement(engine: LuaVM) -> None:
    assert engine.run(b"let x = 1;", 1, 0).kind == "ok"
    assert engine.run(b"x = 2; let", 2, 0).kind == "syntax"
    assert engine.run(b"x", 3, 0).values == b"[1]"


def test_lua_is_checked_too() -> None:
    engine = LuaVM()
    engine.configure(_EMPTY)
    assert engine.check(b"x = 1 return x").kind == "ok"
    report = engine.check(b"return return")
    assert (report.kind, report.message) == ("syntax", b"script:1: unexpected symbol near 'return'")
    assert engine.globals() == b"[]"


COMPLETE = ("1 + 1", "let x = 1;", "/* comment", '"open', "let = 1;", "x }", "let é = [", "\udc80")
UNFINISHED = (
    *("if x {", "if x {\n  y", "fn f(a,", "[1, 2", "#{a: 1,", "`text ${x", "1 +"),
    'let s = "é"; [',
)


@pytest.mark.parametrize("text", [*COMPLETE, *UNFINISHED])
def test_texts_that_need_more_lines(text: str) -> None:
    assert language("rhai").completeness()(text) is (text in COMPLETE)


def test_every_file_is_part_of_the_chunk() -> None:
    files = Path(language_of_rhai.__file__).parent
    for folder, names in (("compiler", COMPILER), ("runtime", RUNTIME)):
        assert {path.stem for path in (files / folder).glob("*.lua")} == {*names, *HOST_FILES[folder]}
        assert len(names) == len(set(names))
