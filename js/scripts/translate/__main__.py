"""`python -m translate FOLDER MODULE…`: these modules and all that they import, into the folder."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from translate.signatures import Module, Untranslatable
from translate.statements import Statements

SOURCES = Path(__file__).parents[3] / "src"
FOREIGN = {"moonbox.errors": "errors.ts", "moonbox.languages.tables": "tables.ts"}
"""Modules that are written by hand for JavaScript, in src/python/."""


def find(name: str) -> Path | None:
    base = SOURCES / name.replace(".", "/")
    return next((path for path in (base.with_suffix(".py"), base / "__init__.py") if path.exists()), None)


def collect(names: list[str]) -> dict[str, Module]:
    """These modules and those that they import, read."""
    import ast

    modules: dict[str, Module] = {}
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
                waiting += [full if find(full := f"{node.module}.{item.name}") else node.module for item in node.names]
    for module in modules.values():
        module.read()
    return modules


def main() -> None:
    folder = Path(sys.argv[1])
    modules = collect(sys.argv[2:])
    own = Path(__file__).parents[2] / "src" / "python"
    places = {
        name: own / FOREIGN[name]
        if name in FOREIGN
        else folder / f"{name.removeprefix('moonbox.').replace('.', '/')}.js"
        for name in modules
    }
    failed = False
    for name, module in modules.items():
        if name in FOREIGN:
            continue
        place = places[name]
        place.parent.mkdir(parents=True, exist_ok=True)

        def relative(path: Path, start: Path = place.parent) -> str:
            text = os.path.relpath(path, start)
            return text if text.startswith(".") else f"./{text}"

        try:
            text = Statements(module).whole(
                relative(own / "runtime.ts"), {each: relative(path) for each, path in places.items()}
            )
        except Untranslatable as error:
            print(f"{module.path}: {error}", file=sys.stderr)
            failed = True
            continue
        place.write_text(text, encoding="utf-8")
    sys.exit(failed)


if __name__ == "__main__":
    main()
