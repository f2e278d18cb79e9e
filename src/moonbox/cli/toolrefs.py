"""References to Python tools on the command line: `module:name`, `module`, `path/file.py:name`."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import pkgutil
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from moonbox.errors import MoonboxError, UsageError
from moonbox.suggest import suggestion
from moonbox.tools.tool import Tool
from moonbox.tools.toolbox import Toolbox

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["load_tools"]

_MOST_LISTED = 8


def load_tools(references: Sequence[str]) -> Toolbox:
    """The tools that the references name, in one toolbox. Modules are looked for in the working folder first."""
    here = str(Path.cwd())
    if references and here not in sys.path:
        sys.path.insert(0, here)
    toolbox = Toolbox()
    for reference in references:
        found = _resolve(reference)
        try:
            toolbox.add(found)
        except MoonboxError as problem:
            raise UsageError(f"--tools {reference}: {problem}") from None
    return toolbox


def _resolve(reference: str) -> Any:
    place, colon, path = reference.partition(":")
    if not place or (colon and not path):
        raise UsageError(f"--tools {reference!r}: name them as module:name, for example crm:find_customer")
    _check_place(place, reference)
    module = _module(place, reference)
    return _attribute(module, path, reference) if colon else _every_tool(module, reference)


def _check_place(place: str, reference: str) -> None:
    """A path is no module: say which of the files there could be meant."""
    path = Path(place)
    if place.endswith(".py") or not (os.sep in place or path.is_file()):
        return
    if path.is_dir():
        files = [f"{path / entry.name}" for entry in _entries(path) if entry.suffix == ".py"]
        raise UsageError(f"--tools {reference}: '{place}' is a folder{_listed(files, 'name a file in it')}")
    if path.exists():
        raise UsageError(f"--tools {reference}: '{place}' is not a Python file; those end in .py")
    near = suggestion(path.name, [entry.name for entry in _entries(path.parent)])
    raise UsageError(f"--tools {reference}: there is no file '{place}'{near}")


def _attribute(module: ModuleType, path: str, reference: str) -> Any:
    found: Any = module
    said = f"the module '{module.__name__}'"
    for name in path.split("."):
        if not hasattr(found, name):
            names = _offered(found) if isinstance(found, ModuleType) else []
            hint = suggestion(name, names) or _listed(names, "it has")
            raise UsageError(f"--tools {reference}: {said} has no '{name}'{hint}")
        found = getattr(found, name)
        said = f"'{name}'"
    return found


def _every_tool(module: ModuleType, reference: str) -> list[Tool]:
    """Its tools, and those of its toolboxes; one that is in both counts once."""
    found: dict[str, Tool] = {}
    for item in vars(module).values():
        for tool in (item,) if isinstance(item, Tool) else item if isinstance(item, Toolbox) else ():
            found.setdefault(tool.path, tool)
    if not found and hasattr(module, "__path__"):
        parts = [f"{module.__name__}.{info.name}" for info in pkgutil.iter_modules(module.__path__)]
        hint = _listed(parts, "name a module in it")
        raise UsageError(f"--tools {reference}: the package '{module.__name__}' has no @tool in it{hint}")
    if not found:
        raise UsageError(
            f"--tools {reference}: the module '{module.__name__}' has no @tool in it; "
            f"name what to take, for example {reference}:{next(iter(_offered(module)), 'name')}"
        )
    return list(found.values())


def _module(place: str, reference: str) -> ModuleType:
    try:
        return _from_file(Path(place), reference) if place.endswith(".py") else importlib.import_module(place)
    except ModuleNotFoundError as problem:
        if problem.name is not None and (place == problem.name or place.startswith(problem.name + ".")):
            near = _modules_near(problem.name)
            hint = suggestion(problem.name, near) or _listed(near, "here there are")
            raise UsageError(f"--tools {reference}: there is no module '{problem.name}'{hint}") from None
        raise UsageError(
            f"--tools {reference}: '{place}' needs a module that is not installed: {problem.name}"
        ) from None
    except MoonboxError as problem:
        raise UsageError(str(problem)) from None
    except Exception as problem:
        where = _line_in(place, problem)
        raise UsageError(
            f"--tools {reference}: '{place}' cannot be loaded: {type(problem).__name__}: {problem}{where}"
        ) from problem


def _from_file(path: Path, reference: str) -> ModuleType:
    if not path.is_file():
        near = suggestion(path.name, [entry.name for entry in _entries(path.parent) if entry.suffix == ".py"])
        raise UsageError(f"--tools {reference}: there is no file '{path}'{near}")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(path.stem, module)  # annotations are looked up there
    spec.loader.exec_module(module)
    return module


def _line_in(place: str, problem: BaseException) -> str:
    """Where in the module itself it went wrong."""
    if isinstance(problem, SyntaxError):
        return ""  # its message says so
    trace, found = problem.__traceback__, ""
    name = Path(place).name if place.endswith(".py") else place.rpartition(".")[2] + ".py"
    while trace is not None:
        if Path(trace.tb_frame.f_code.co_filename).name == name:
            found = f" ({name}, line {trace.tb_lineno})"
        trace = trace.tb_next
    return found


def _modules_near(name: str) -> list[str]:
    package, _, _ = name.rpartition(".")
    if package:
        parent = sys.modules.get(package)
        return [f"{package}.{info.name}" for info in pkgutil.iter_modules(getattr(parent, "__path__", []))]
    return [info.name for info in pkgutil.iter_modules([str(Path.cwd())])]


def _entries(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _offered(found: Any) -> list[str]:
    """Names under which tools may be found."""
    return [name for name, item in vars(found).items() if not name.startswith("_") and _may_be_tools(item, found)]


def _may_be_tools(item: Any, owner: Any) -> bool:
    if isinstance(item, Tool | Toolbox | list | tuple):
        return True
    return inspect.isfunction(item) and item.__module__ == getattr(owner, "__name__", None)


def _listed(names: Sequence[str], what: str) -> str:
    more = ", …" if len(names) > _MOST_LISTED else ""
    return f"; {what}: {', '.join(names[:_MOST_LISTED])}{more}" if names else ""
