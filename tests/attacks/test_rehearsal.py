"""Workers rehearse an empty run before they are handed out: a script must not be able to tell."""

from __future__ import annotations

from typing import Any

import pytest

from moonbox import Limits, Sandbox
from moonbox.languages.lua.vm import LuaVM

NAMES = """
local names = {}
for name in pairs(_G) do names[#names + 1] = name end
table.sort(names)
return { table.concat(names, " "), tostring(print), tostring({}), tostring(function() end), select("#", ...) }
"""
SCRIPTS = {  # none of Python: nothing runs in its zygote, for Monty's process begins with each Repl
    "lua": (
        NAMES,
        "local function f() error('no') end\nf()",
        "error({ code = 1 })",
        "local ok, e = pcall(function() return docs.describe(5) end) return ok, e.message",
    ),
    "rhai": ("let a = [1, 2]; a.len()", "fn f() { throw 1 }\nf()"),
}


def _seen(isolation: Any, language: str, limits: Limits) -> list[Any]:
    found = []
    with Sandbox(isolation=isolation, language=language, limits=limits, min_workers=2) as box:
        for source in SCRIPTS[language] * 2:
            with box.repl() as repl:
                before = repl.globals()
                run = repl.run(source)
                error = run.error and (run.error.message, run.error.line, run.error.frames, run.error.traceback)
                found.append((before, run.values, run.output, error, run.number, run.usage.operations, len(run.calls)))
    return found


@pytest.mark.parametrize("limits", [Limits(), Limits(max_operations=9_000), Limits.untrusted()])
@pytest.mark.parametrize("language", SCRIPTS)
def test_nothing_of_it_is_seen(language: str, limits: Limits) -> None:
    assert _seen("process", language, limits) == _seen("inline", language, limits)


def test_random_numbers_come_from_the_seed_alone() -> None:
    with Sandbox() as box, box.repl() as repl:
        run = repl.run("return math.random(1 << 53), math.random(1 << 53)")
    vm = LuaVM()
    vm.set_limits(Limits().to_dict())
    vm.configure({"tools": [], "functions": [], "values": [], "features": []})
    outcome = vm.run(b"return math.random(1 << 53), math.random(1 << 53)", 1, run.seed)
    assert outcome.values == f"[{run.values[0]},{run.values[1]}]".encode()


@pytest.mark.parametrize("language", ["lua", "rhai"])
def test_memory_of_a_first_run_is_its_own(language: str) -> None:
    with Sandbox(language=language) as box, box.repl() as repl:
        assert repl.run("1").usage.peak_memory < 100_000
