"""The layers: each package imports only from those below it, and a worker only what it needs."""

from __future__ import annotations

import ast
import re
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import moonbox

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(moonbox.__file__).parent
DRAWING = (ROOT.parent.parent / "docs" / "architecture.md").read_text(encoding="utf-8")
"""The page that draws the layers: what is checked is what it shows."""
FACE = {"__init__", "__main__"}
"""The public names, which load what they need when it is asked for."""
OF_THE_WORKER = {"errors", "limits", "native", "values", "languages", "worker"}
WORKER_SIDE = ("worker/child.py", "worker/zygote.py", "worker/protocol.py", "worker/jail")


def drawn() -> dict[str, tuple[int, int, int]]:
    """Of each package: its line, from the bottom; its group in the line; its place in the group."""
    _, drawing, _ = DRAWING.split("## Layers", 1)[1].split("```", 2)
    *lines, base = drawing.strip("\n").splitlines()
    places = dict.fromkeys(base.split(), (0, 0, 0))
    for height, line in enumerate(reversed(lines), 1):
        packages = re.split(r"\s{3,}", line[4:])[0]
        for group, names in enumerate(packages.split("│")):
            places |= {name.strip(): (height, group, place) for place, name in enumerate(names.split("←"))}
    return places


LAYERS = drawn()


def may_import(mine: str, theirs: str) -> bool:
    """Whether the drawing lets one package import the other."""
    (height, group, place), (their_height, their_group, their_place) = LAYERS[mine], LAYERS[theirs]
    if height != their_height:
        return height > their_height
    return group == their_group and (height == 0 or their_place < place)


def test_the_drawing_has_every_package() -> None:
    there = {package(path) for path in modules()} - FACE
    assert there == LAYERS.keys()
    tree_of_source = DRAWING.split("\nsrc/moonbox/\n")[1].split("```")[0]
    listed = set(re.findall(r"^  (\w+)/ ", tree_of_source, re.MULTILINE))
    assert listed == {name for name in there if (ROOT / name).is_dir()}


def modules() -> list[Path]:
    return sorted(ROOT.rglob("*.py"))


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imports(path: Path) -> Iterator[str]:
    """Full names of the modules that a file imports anywhere in it, also inside functions and by name at run time."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and is_module(node.value):
            yield node.value
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}: a relative import"
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names if node.module == "moonbox")


def is_module(name: str) -> bool:
    """Whether a string names a module of ours, as those do that are handed to `import_module`."""
    first, *parts = name.partition(":")[0].split(".")
    if first != "moonbox" or not parts or not all(map(str.isidentifier, parts)):
        return False
    place = ROOT.joinpath(*parts)
    return place.with_suffix(".py").is_file() or (place / "__init__.py").is_file()


def package(path: Path) -> str:
    first = path.relative_to(ROOT).parts[0]
    return first.removesuffix(".py")


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_go_downwards(path: Path) -> None:
    mine = package(path)
    if mine in FACE:
        return
    for name in imports(path):
        parts = name.split(".")
        if parts[0] != "moonbox" or len(parts) == 1 or parts[1] == mine:
            continue
        theirs = parts[1]
        if theirs not in LAYERS:  # a name of the public face, such as `from moonbox import Limits`
            assert LAYERS[mine] > LAYERS["sandbox"], f"{path.name} imports the public face from below it: {name}"
            continue
        assert may_import(mine, theirs), f"{path.name} imports {name}, which is not below it"


def imported_first(path: Path) -> Iterator[Path]:
    """The modules of ours that must be there before a module is: imported outside of functions and of type checks."""

    def statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
        for statement in body:
            if isinstance(statement, ast.If) and "TYPE_CHECKING" in ast.unparse(statement.test):
                continue
            if isinstance(statement, (ast.If, ast.Try, ast.With, ast.ClassDef)):
                yield from statements(statement.body)
            yield statement

    for statement in statements(tree(path).body):
        if isinstance(statement, ast.ImportFrom) and statement.module:
            names = [statement.module, *(f"{statement.module}.{alias.name}" for alias in statement.names)]
        else:
            names = [alias.name for alias in statement.names] if isinstance(statement, ast.Import) else []
        for name in names:
            parts = name.split(".")[1:] if name.startswith("moonbox.") else []
            for size in range(1, len(parts) + 1):
                place = ROOT.joinpath(*parts[:size])
                if place.with_suffix(".py").is_file():
                    yield place.with_suffix(".py")
                elif not path.is_relative_to(place) and (place / "__init__.py").is_file():
                    yield place / "__init__.py"  # a package of its own, or above it, is being imported already


def test_no_module_imports_itself_in_a_circle() -> None:
    done: set[Path] = set()

    def visit(path: Path, way: list[Path]) -> None:
        assert path not in way, " -> ".join(str(each.relative_to(ROOT)) for each in [*way[way.index(path) :], path])
        if path not in done:
            for needed in imported_first(path):
                visit(needed, [*way, path])
            done.add(path)

    for path in modules():
        if path != ROOT / "__init__.py":
            visit(path, [])


def worker_side() -> list[Path]:
    found = []
    for name in WORKER_SIDE:
        path = ROOT / name
        found += sorted(path.rglob("*.py")) if path.is_dir() else [path]
    return [*found, *sorted((ROOT / "languages" / "lua").glob("*.py"))]


@pytest.mark.parametrize("path", worker_side(), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_worker_imports_little(path: Path) -> None:
    for name in imports(path):
        top = name.split(".")[0]
        if top == "moonbox":
            assert name == "moonbox" or name.split(".")[1] in {*OF_THE_WORKER, "suggest"}, name
        else:
            assert top == "lupa" or top in sys.stdlib_module_names, f"{path.name} imports {name} in a worker"


def test_the_worker_process_loads_nothing_of_the_host() -> None:
    import subprocess

    program = (
        "import sys, moonbox.worker.zygote, moonbox.worker.child, moonbox.worker.jail, moonbox.languages.lua.vm; "
        "moonbox.languages.lua.vm.LuaVM(); print(' '.join(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120)
    loaded = set(done.stdout.split())
    for name in ("pydantic", "jsonschema_rs", "asyncio", "subprocess", "threading", "socket", "httpx", "rich"):
        assert name not in loaded, name
    assert {name for name in loaded if name.startswith("moonbox.")} >= {
        "moonbox.languages.lua.vm",
        "moonbox.worker.child",
    }
    for layer in ("sandbox", "tools", "audit", "cli", "http", "mcp", "codemode", "scripts", "knowledge"):
        assert not any(name.startswith(f"moonbox.{layer}") for name in loaded), layer


def test_files_begin_with_what_they_are() -> None:
    for path in modules():
        if tree(path).body:
            assert ast.get_docstring(tree(path)), f"{path} does not say what it is"


def test_a_class_name_means_one_class() -> None:
    names: dict[str, list[str]] = {}
    for path in modules():
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.ClassDef):
                names.setdefault(node.name, []).append(path.relative_to(ROOT).as_posix())
    assert {name: places for name, places in names.items() if len(places) > 1} == {}


def test_functions_fit_a_screen() -> None:
    long = {
        f"{path.relative_to(ROOT).as_posix()} {node.name}"
        for path in modules()
        for node in ast.walk(tree(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (node.end_lineno or 0) - node.lineno >= 50
    }
    assert not long
