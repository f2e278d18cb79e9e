"""Every function of the environment called with every kind of wrong argument: what scripts and models are told."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from moonbox import Limits, Sandbox
from tests.long import LONG
from tests.script_cases import ISOLATIONS, case_tools

if TYPE_CHECKING:
    from collections.abc import Iterator

    from moonbox import Repl

FEATURES = {"coroutines", "metatables"}
LIMITS = Limits(max_tool_calls=None, timeout=250, max_array=1_000_000)
SWEEP = (Path(__file__).parent / "misuse.lua").read_text()
LEAKS = re.compile(
    r"raw_|moonbox|\[string|upvalue|userdata|[Pp]ython|lupa|File \"|/src/|/site-packages|0x[0-9a-f]{8}|\bchar \d"
    r"|\bNone\b|\bTrue\b|\bFalse\b|object at|Traceback|<class"
)
NONSENSE = re.compile(r"(\w+) expected, got (\w+)\b")
NAMES = """
local names = {}
for name, value in pairs(_G) do
  if type(value) == "function" then names[#names + 1] = name end
  if type(value) == "table" and name ~= "_G" then
    for member, inner in pairs(value) do
      if type(inner) == "function" then names[#names + 1] = name .. "." .. member end
    end
  end
end
table.sort(names)
return names
"""
VALUES = [
    "nil", "null", "7", "1.5", "true", '"text"', "{}", "array{}", "print", "coroutine.create(print)", "string", "table",
    "tools", "select(2, pcall(tools.fail))", 'setmetatable({}, {__name = "Thing"})',
]  # fmt: skip


@pytest.fixture(scope="module", params=ISOLATIONS if LONG else ISOLATIONS[:1])
def repl(request: pytest.FixtureRequest) -> Iterator[Repl]:
    with (
        Sandbox(case_tools(), isolation=request.param, lua_features=FEATURES) as box,
        box.repl(limits=LIMITS) as repl,
    ):
        yield repl


def test_what_scripts_catch(repl: Repl) -> None:
    said = repl.run(SWEEP).unwrap()
    assert len(said) > 1000
    for where, message in said:
        _check(where, message if isinstance(message, str) else message.decode("latin-1"))


def test_what_models_read(repl: Repl) -> None:
    failed = 0
    for number, name in enumerate(repl.run(NAMES).unwrap()):
        for turn, value in enumerate(VALUES, number):
            ways = (value, f'"text", {value}', f"{{1}}, {value}, {value}")
            for arguments in ways if LONG else [ways[turn % 3]]:
                run = repl.run(f"local before = 1\nlocal got = {name}({arguments})\nlocal after = 1")
                if run.error is None:
                    continue
                failed += 1
                where = f"{name}({arguments})"
                _check(where, f"{run.error.message}\n{run.error.hint}")
                assert run.error.line == 2, where
                assert run.error.traceback.startswith(f"2 | local got = {name}("), where
                assert "^" in run.error.traceback, where
    assert failed > (1500 if LONG else 500)


def _check(where: str, message: str) -> None:
    assert not LEAKS.search(message.removesuffix("\nNone")), (where, message)
    for wanted, got in NONSENSE.findall(message):
        assert wanted != got, (where, message)
