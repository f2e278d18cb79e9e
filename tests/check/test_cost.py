"""The cost of a look at a script: in proportion to its length, whatever it holds."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from tests.counting import count_calls

if TYPE_CHECKING:
    from .conftest import Find

HOSTILE = {
    "deep chains": lambda n: "return a" + ".b" * n,
    "deep calls": lambda n: "return a" + "()" * n,
    "long sums": lambda n: "return 1" + "+1" * n,
    "alternatives": lambda n: "return a" + " or a" * n,
    "negations": lambda n: "return " + "not " * n + "x",
    "nested tables": lambda n: "return " + "{" * n + "}" * n,
    "unknown tools": lambda n: "\n".join(f"tools.unknown{i}()" for i in range(n // 4)),
    "unknown names": lambda n: "\n".join(f"print(u{i})" for i in range(n // 4)),
    "many arguments": lambda n: "tools.search{" + ",".join(f"a{i}=1" for i in range(n // 4)) + "}",
    "many functions": lambda n: "local function f() return tools.search{query = 'x'} end\n" * (n // 12),
    "loops from zero": lambda n: "for i = 0, #a - 1 do print(a[i]) end\n" * (n // 16),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_linear(kind: str, find: Find) -> None:
    make = HOSTILE[kind]
    small, large = (count_calls(partial(find, make(size))) for size in (1_000, 4_000))
    assert large <= 6 * small + 5_000
    assert len(find(make(20_000))) <= 20


def test_a_script_that_is_too_long_is_not_looked_at(find: Find) -> None:
    assert find("return tools.unknown{} --" + "x" * 70_000) == ()


@pytest.mark.parametrize("source", ["let x = `${", "`" * 999, "/* " * 5_000, "[" * 5_000, "|" * 5_000, "#{a: " * 500])
def test_rhai_that_cannot_be_read(source: str, find: Find) -> None:
    assert find(source, "rhai") == ()
