"""Authoring of tool scripts: new files from templates, and the examples beside a script with their expected results."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any

from moonbox.audit.compact import short
from moonbox.config import FILE_NAME
from moonbox.errors import ArgumentError, ConfigError, ToolDefinitionError, UsageError
from moonbox.scripts.definition import read_source
from moonbox.suggest import unknown

if TYPE_CHECKING:
    from pathlib import Path

    from moonbox.scripts.library import LoadedScript, ScriptLibrary

_KEYS = ("name", "params", "result", "error")
_SHOWN = 200
_FILE_NAME = r"[A-Za-z0-9_][A-Za-z0-9_-]*"


def write_tool(name: str, folder: Path) -> Path:
    """Write a commented tool script. Never replaces a file."""
    if not re.fullmatch(_FILE_NAME, name):
        raise UsageError(f"invalid tool name {name!r}; use letters, digits, - and _")
    return _write(folder / f"{name}.lua", _template("tool.lua").replace("@NAME@", name))


def write_config(folder: Path) -> Path:
    """Write a commented moonbox.toml and create the folder for tools. Never replaces a file."""
    path = _write(folder / FILE_NAME, _template(FILE_NAME))
    (folder / "tools").mkdir(exist_ok=True)
    return path


def _template(name: str) -> str:
    return resources.files("moonbox.scripts").joinpath("files", name).read_text(encoding="utf-8")


def _write(path: Path, text: str) -> Path:
    if path.parent.exists() and not path.parent.is_dir():
        raise UsageError(f"{path.parent} is a file, not a folder; nothing was changed")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise UsageError(f"{path} exists already; nothing was changed") from None
    except OSError as problem:
        raise UsageError(f"{path} cannot be written: {problem.strerror or problem}") from None
    return path


@dataclass(frozen=True, slots=True)
class Example:
    """One call: its parameters, and the expected result or a part of the expected error message."""

    title: str
    params: dict[str, Any]
    result: Any = None
    error: str | None = None


def examples_file(script: Path) -> Path:
    """Where the examples of a script are."""
    return script.with_name(f"{script.stem}.examples.json")


def examples_of(script: Path) -> tuple[Example, ...]:
    """The examples of a script; empty without the file. Raises ConfigError if the file is invalid."""
    file = examples_file(script)
    if not file.exists():
        return ()
    try:
        data = json.loads(read_source(file))
    except ToolDefinitionError as problem:
        raise ConfigError(str(problem)) from None
    except ValueError as problem:
        raise ConfigError(f"{file.name} is not valid JSON: {problem}") from None
    if not isinstance(data, list):
        raise ConfigError(f'{file.name} must be a list of {{"params": {{…}}, "result": …}}')
    return tuple(_example(item, f"{file.name}[{place}]") for place, item in enumerate(data))


def run_example(library: ScriptLibrary, script: LoadedScript, example: Example) -> str | None:
    """How the result differs from the expected one; None if it does not."""
    assert script.tool is not None
    message: str | None
    try:
        run = library.execute(script.settings.name, script.tool.bind(example.params))
        message, value = (None if run.error is None else str(run.error)), run.value
    except ArgumentError as problem:
        message, value = problem.message, None
    if example.error is not None:
        if message is None:
            return f"expected an error with '{example.error}', but it returned {short(value, _SHOWN)}"
        return None if example.error in message else f"expected an error with '{example.error}', not: {message}"
    if message is not None:
        return message
    if value == example.result:
        return None
    return f"expected {short(example.result, _SHOWN)}, not {short(value, _SHOWN)}"


def _example(item: Any, where: str) -> Example:
    if not isinstance(item, dict):
        raise ConfigError(f"{where} must be an object with params, and result or error")
    for key in item:
        if key not in _KEYS:
            raise ConfigError(f"{where}: {unknown('key', key, _KEYS)}")
    params, error = item.get("params", {}), item.get("error")
    if not isinstance(params, dict):
        raise ConfigError(f"{where}: params must be an object")
    if ("result" in item) == ("error" in item):
        raise ConfigError(f"{where}: give either result or error")
    if error is not None and not isinstance(error, str):
        raise ConfigError(f"{where}: error must be text")
    return Example(str(item.get("name") or short(params, 60)), params, item.get("result"), error)
