"""Types that users meet: a tool keeps its function's signature, hints are known keys, arguments are a mapping."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from mypy import api

if TYPE_CHECKING:
    from pathlib import Path

SNIPPET = '''
from moonbox import Middleware, Sandbox, Tool, ToolCall, Toolbox, tool

@tool
def add(a: int, b: int = 1) -> int:
    """Add."""
    return a + b

@tool(name="times", hints={"read_only": True}, timeout=5)
async def multiply(a: int, b: int) -> int:
    """Multiply."""
    return a * b

class Shop:
    @tool
    def price(self, name: str) -> float:
        """A price."""
        return 1.0

right: int = add(1, b=2)
reveal_type(add)  # Tool[[a: int, b: int =], int]
reveal_type(add.with_(name="plus"))  # Tool[[a: int, b: int =], int]
reveal_type(Shop().price("tea"))  # float
add("x")  # error: Argument 1 to "__call__" of "Tool" has incompatible type "str"; expected "int"
add(1, c=2)  # error: Unexpected keyword argument "c" for "__call__" of "Tool"
multiply(1)  # error: Missing positional argument "b" in call to "__call__" of "Tool"
wrong: str = add(1)  # error: Incompatible types in assignment
Shop().price(7)  # error: Argument 1 to "__call__" of "Tool" has incompatible type "int"; expected "str"

@tool(hints={"read_onli": True})  # error: No overload variant of "tool" matches
def typo() -> None: ...

Tool.from_schema(name="f", call=print, hints={"destructive": "yes"})  # error: Argument "hints"
tools: list[Tool] = [add, multiply, Shop().price]
box = Toolbox([add, multiply])
sandbox = Sandbox(tools=[add, Shop().price])
first: Tool = box["add"]
anything = first(1, 2, 3)

def watch(call: ToolCall) -> None:
    reveal_type(call.arguments)  # Mapping[str, Any]
    call.arguments["a"] = 1  # error: Unsupported target for indexed assignment
'''


@pytest.fixture(scope="module")
def messages(tmp_path_factory: pytest.TempPathFactory) -> dict[int, list[str]]:
    """What mypy says about the snippet, by line."""
    folder: Path = tmp_path_factory.mktemp("typing")
    path = folder / "snippet.py"
    path.write_text(SNIPPET, encoding="utf-8")
    settings = folder / "mypy.ini"
    settings.write_text("[mypy]\nstrict = True\nfollow_imports = silent\n", encoding="utf-8")
    cache = folder / "cache"
    out, problems, _ = api.run(["--config-file", str(settings), "--cache-dir", str(cache), str(path)])
    assert problems == ""
    said: dict[int, list[str]] = {}
    for line in out.splitlines():
        if match := re.fullmatch(r".*snippet\.py:(\d+): (error|note): (.*)", line):
            said.setdefault(int(match[1]), []).append(f"{match[2]}: {match[3]}")
    return said


@pytest.mark.parametrize(
    ("number", "line"),
    [(number, line) for number, line in enumerate(SNIPPET.splitlines(), 1) if line],
    ids=lambda part: str(part)[:40],
)
def test_a_line(messages: dict[int, list[str]], number: int, line: str) -> None:
    reported = " ".join(messages.get(number, ()))
    code, _, expected = line.partition("  # ")
    if "reveal_type" in code:
        name, _, rest = expected.partition("[")
        assert re.search(rf'Revealed type is "(?:[\w.]*\.)?{re.escape(name)}', reported), reported
        assert re.sub(r"builtins\.|typing\.", "", reported).endswith(f'{rest}"' if rest else f'{name}"'), reported
    elif expected:
        assert expected in reported
    else:
        assert "error" not in reported
