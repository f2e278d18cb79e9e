"""The layers: each part of the package imports only from those below it, and importing the package costs little."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import moonbox

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE = Path(moonbox.__file__).parent
LAYERS = (
    {"errors", "limits", "values", "_version"},
    {"engine", "tools", "audit"},
    {"worker"},
    {"sandbox"},
    {"scripts", "knowledge", "hostapi", "config"},
    {"codemode"},
    {"adapters", "mcp", "http"},
    {"assembly"},
    {"cli"},
)
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
APART = {"engine", "tools", "audit", "adapters", "mcp", "http"}
"""Parts of one layer that do not know each other."""


def part_of(path: Path) -> str:
    """`sandbox` for sandbox/repl.py, `limits` for limits.py."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(path: Path) -> Iterator[tuple[int, str]]:
    """Lines and parts of moonbox that a module imports when it runs, at once or later."""
    tree = ast.parse(path.read_text("utf-8"))
    for_types = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if node in for_types:
            continue
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module == "moonbox":
            names = [f"moonbox.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: import by the full name"
            names = [node.module or ""]
        else:
            continue
        for name in names:
            if name.startswith("moonbox."):
                yield node.lineno, name.split(".")[1]


MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path.parent != PACKAGE or path.stem != "__init__")


@pytest.mark.parametrize("part", sorted({part_of(path) for path in MODULES}))
def test_imports_go_down(part: str) -> None:
    assert part in LEVEL, f"{part} has no place in the layers: give it one here and in docs/architecture.md"
    wrong = []
    for path in MODULES:
        if part_of(path) != part:
            continue
        for line, other in imported(path):
            # Names of the public face, such as moonbox.Sandbox, are not parts; only `__version__` is used that way.
            level = LEVEL.get(other, 0 if other == "__version__" else None)
            beside = level == LEVEL[part] and part != other and part in APART and other in APART
            if level is None or level > LEVEL[part] or beside:
                wrong.append(f"{path.relative_to(PACKAGE)}:{line} imports {other}")
    assert wrong == []


@pytest.mark.parametrize(
    ("code", "absent"),
    [
        ("import moonbox", {"typing", "asyncio", "pydantic", "lupa", "json", "subprocess"}),
        ("import moonbox; moonbox.Sandbox", {"pydantic", "jsonschema_rs", "httpx", "rich", "typer", "mcp"}),
    ],
)
def test_importing_is_cheap(code: str, absent: set[str]) -> None:
    script = f"import sys; before = set(sys.modules); {code}; print(*(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-S", "-c", _WITH_PATH + script], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) & absent == set()


_WITH_PATH = f"import sys; sys.path[:0] = {[*sys.path]!r}; "
