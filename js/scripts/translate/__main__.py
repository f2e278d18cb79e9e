"""`python -m translate FOLDER`: the modules that both packages need, and all that they import, into the folder."""

from __future__ import annotations

import ast
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from translate.signatures import Module, Untranslatable
from translate.statements import Statements

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

SOURCES = Path(__file__).parents[3] / "src"
FOREIGN = {
    "moonbox.errors": "errors.ts",
    "moonbox.languages.registry": "registry.ts",
    "moonbox.languages.tables": "tables.ts",
    "moonbox.schema.bounds": "validation.ts",
    "moonbox.schema.validation": "validation.ts",
}
"""Modules that are written by hand for JavaScript, in src/python/."""


SHARED = (
    "moonbox.audit.answer",
    "moonbox.codemode.catalog",
    "moonbox.codemode.definitions",
    "moonbox.codemode.misdirected",
    "moonbox.suggest",
    "moonbox.check.checker",
    "moonbox.check.tools",
    "moonbox.failures",
    "moonbox.schema.closing",
    "moonbox.runs.docs",
    "moonbox.tools.binding",
    "moonbox.tools.naming",
    "moonbox.tools.search",
    "moonbox.tools.signature",
    "moonbox.languages.lua.explain.compose",
    "moonbox.languages.lua.syntax.listing",
    "moonbox.languages.rhai.vocabulary",
)
"""What the npm package imports by itself."""


class Refused(Exception):
    """A module that cannot be translated; says what imports it."""


def find(name: str) -> Path | None:
    base = SOURCES / name.replace(".", "/")
    return next((path for path in (base.with_suffix(".py"), base / "__init__.py") if path.exists()), None)


def collect(names: Iterable[str] = SHARED) -> tuple[dict[str, Module], dict[str, str]]:
    """These modules and those that they import, read; and for each of the latter, which one brought it."""
    modules: dict[str, Module] = {}
    brought: dict[str, str] = {}
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        path = find(name)
        if name in modules or path is None:
            continue
        module = Module(name, path, modules)
        if name in FOREIGN:
            continue
        for node in ast.walk(ast.Module(Module.statements(module.tree.body), [])):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("moonbox"):
                for item in node.names:
                    other = full if find(full := f"{node.module}.{item.name}") else node.module
                    brought.setdefault(other, name)
                    waiting.append(other)
    for module in modules.values():
        module.read()
    return modules, brought


def translated(modules: dict[str, Module], brought: dict[str, str], folder: Path) -> Iterator[tuple[Path, str]]:
    """Each module's place and text. Raises Refused where one is not translated."""
    own = Path(__file__).parents[2] / "src" / "python"
    places = {
        name: own / FOREIGN[name]
        if name in FOREIGN
        else folder / f"{name.removeprefix('moonbox.').replace('.', '/')}.js"
        for name in modules
    }
    for name, module in modules.items():
        if name in FOREIGN:
            continue

        def relative(path: Path, start: Path = places[name].parent) -> str:
            text = os.path.relpath(path, start)
            return text if text.startswith(".") else f"./{text}"

        try:
            text = Statements(module).whole(
                relative(own / "runtime.ts"), {each: relative(path) for each, path in places.items()}
            )
        except Untranslatable as error:
            raise Refused(f"{module.path.relative_to(SOURCES)}: {error}{_chain(name, brought)}") from error
        yield places[name], text


def _chain(name: str, brought: dict[str, str]) -> str:
    """`; imported by A, by B`: how a module came to be translated."""
    above = []
    while name in brought and name not in SHARED:
        name = brought[name]
        above.append(name)
    return f"; imported by {', by '.join(above)}" if above else ""


def main() -> None:
    try:
        for place, text in translated(*collect(), Path(sys.argv[1])):
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, encoding="utf-8")
    except Refused as refusal:
        sys.exit(f"the npm package translates modules of the Python package; this one it cannot: {refusal}")


if __name__ == "__main__":
    main()
