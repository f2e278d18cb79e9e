"""Python tools by reference: `module:name`, `module`, `path/file.py:name`."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import pkgutil
import sys
from collections.abc import Sequence
from pathlib import Path
from traceback import extract_tb
from types import ModuleType
from typing import TYPE_CHECKING, Any

from moonbox.config.file import ownership_problem, resolve_path
from moonbox.errors import MoonboxError, UsageError
from moonbox.suggest import suggestion
from moonbox.tools.tool import Tool
from moonbox.tools.toolbox import Toolbox

if TYPE_CHECKING:
    from moonbox.sandbox.sandbox import Sandbox

_MOST_LISTED = 8


def load_tools(
    references: Sequence[str],
    *,
    folder: Path | None = None,
    option: str = "--tools",
    boxes: list[Sandbox] | None = None,
) -> Toolbox:
    """The tools that the references name, in one toolbox. Modules in `folder`, by default this one, are found first.

    UsageError names the reference, as an argument of `option`. A reference may name a Sandbox: its tools are taken, and
    it is added to `boxes` for the functions that it defines.
    """
    from moonbox.sandbox.sandbox import Sandbox

    here = str(folder or Path.cwd())
    if references and here not in sys.path:
        sys.path.insert(0, here)
    toolbox = Toolbox()
    for reference in references:
        try:
            found = _resolve(reference, folder)
            if isinstance(found, Sandbox):
                found.close()  # it runs nothing here
                if boxes is not None:
                    boxes.append(found)
                found = found.toolbox
            toolbox.add(found)
        except MoonboxError as problem:
            raise UsageError(f"{option} {reference}: {problem}") from problem.__cause__
    return toolbox


def _resolve(reference: str, folder: Path | None) -> Any:
    place, colon, path = reference.partition(":")
    if folder is not None and place.endswith(".py"):
        place = str(resolve_path(folder, place))
    if not place or (colon and not path):
        raise UsageError("write module:name, for example crm:find_customer")
    if not place.endswith(".py") and (os.sep in place or Path(place).is_file()):
        raise UsageError(f"'{place}' is not a Python file (.py)")
    module = _module(place)
    return _attribute(module, path) if colon else _every_tool(module, reference)


def _module(place: str) -> ModuleType:
    base = Path(*place.split("."))
    places = [Path(place)] if place.endswith(".py") else [base.with_suffix(".py"), base / "__init__.py"]
    file = next((path for path in places if path.is_file()), None)
    if file is not None and (problem := ownership_problem(file)) is not None:
        raise UsageError(f"{problem}; it was not loaded")
    try:
        return _from_file(Path(place)) if place.endswith(".py") else importlib.import_module(place)
    except ModuleNotFoundError as problem:
        missing = problem.name or ""
        if place == missing or place.startswith(missing + "."):
            near = _modules_beside(missing)
            hint = suggestion(missing, near) or _listed(near, "modules here")
            raise UsageError(f"the module '{missing}' does not exist{hint}") from None
        raise UsageError(f"'{place}' imports '{missing}', which is not installed") from None
    except MoonboxError:
        raise
    except Exception as problem:
        name = Path(place).name if place.endswith(".py") else f"{place.rpartition('.')[2]}.py"
        lines = [frame.lineno for frame in extract_tb(problem.__traceback__) if Path(frame.filename).name == name]
        where = f" ({name}, line {lines[-1]})" if lines else ""
        raise UsageError(f"'{place}' cannot be loaded: {type(problem).__name__}: {problem}{where}") from problem


def _from_file(path: Path) -> ModuleType:
    if not path.is_file():
        near = suggestion(path.name, [file.name for file in path.parent.glob("*.py")])
        raise UsageError(f"the file '{path}' does not exist{near}")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(path.stem, module)  # annotations are looked up there
    spec.loader.exec_module(module)
    return module


def _attribute(module: ModuleType, path: str) -> Any:
    value: Any = module
    owner = f"the module '{module.__name__}'"
    for name in path.split("."):
        if not hasattr(value, name):
            names = _candidates(value) if isinstance(value, ModuleType) else []
            hint = suggestion(name, names) or _listed(names, "it has")
            raise UsageError(f"{owner} has no '{name}'{hint}")
        value = getattr(value, name)
        owner = f"'{name}'"
    return value


def _every_tool(module: ModuleType, reference: str) -> list[Tool]:
    """Its tools, and those of its toolboxes; one that is in both counts once."""
    tools: dict[str, Tool] = {}
    for item in vars(module).values():
        for tool in (item,) if isinstance(item, Tool) else item if isinstance(item, Toolbox) else ():
            tools.setdefault(tool.path, tool)
    if tools:
        return list(tools.values())
    if hasattr(module, "__path__"):
        parts = [f"{module.__name__}.{info.name}" for info in pkgutil.iter_modules(module.__path__)]
        raise UsageError(f"the package '{module.__name__}' has no @tool{_listed(parts, 'choose one of its modules')}")
    example = f"{reference}:{next(iter(_candidates(module)), 'name')}"
    raise UsageError(f"the module '{module.__name__}' has no @tool; name a function, for example {example}")


def _modules_beside(name: str) -> list[str]:
    package, dot, _ = name.rpartition(".")
    places = getattr(sys.modules.get(package), "__path__", []) if package else [str(Path.cwd())]
    return [f"{package}{dot}{info.name}" for info in pkgutil.iter_modules(places)]


def _candidates(module: ModuleType) -> list[str]:
    """Names of what may be a tool."""
    return [
        name
        for name, item in vars(module).items()
        if not name.startswith("_")
        and (
            isinstance(item, Tool | Toolbox | list | tuple)
            or (inspect.isfunction(item) and item.__module__ == module.__name__)
        )
    ]


def _listed(names: Sequence[str], what: str) -> str:
    more = ", …" if len(names) > _MOST_LISTED else ""
    return f"; {what}: {', '.join(names[:_MOST_LISTED])}{more}" if names else ""
