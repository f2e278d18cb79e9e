"""Authoring of tool scripts: new files from templates, and the examples beside a script with their expected results."""

from __future__ import annotations

import json
import re
import threading
from dataclasses import dataclass
from functools import partial
from importlib import resources
from typing import TYPE_CHECKING, Any

from moonbox.compact import short
from moonbox.config import FILE_NAME
from moonbox.errors import ArgumentError, ConfigError, ToolDefinitionError, ToolError, UsageError
from moonbox.scripts.definition import read_source
from moonbox.scripts.hostapi.functions import Parameter, Wrong, checked, options
from moonbox.tools.tool import Tool
from moonbox.tools.toolbox import Toolbox
from moonbox.values import from_jsonable, to_jsonable

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from moonbox.scripts.library import LoadedScript, ScriptLibrary

_SHOWN = 200
_FILE_NAME = r"[A-Za-z0-9_][A-Za-z0-9_-]*"


def write_tool(name: str, folder: Path) -> Path:
    """Write a commented tool script. Never replaces a file."""
    if not re.fullmatch(_FILE_NAME, name):
        raise UsageError(f"invalid tool name {name!r}; use letters, digits, - and _")
    return write_new(folder / f"{name}.lua", _template("tool.lua").replace("@NAME@", name))


def write_config(folder: Path) -> Path:
    """Write a commented moonbox.toml and create the folder for tools. Never replaces a file."""
    path = write_new(folder / FILE_NAME, _template(FILE_NAME))
    (folder / "tools").mkdir(exist_ok=True)
    return path


def _template(name: str) -> str:
    return resources.files("moonbox.scripts").joinpath("files", name).read_text(encoding="utf-8")


def write_new(path: Path, text: str) -> Path:
    """Write a file and the folders that it needs. Never replaces a file."""
    if path.parent.exists() and not path.parent.is_dir():
        raise UsageError(f"{path.parent} is a file, not a folder; nothing was changed")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise UsageError(f"{path} exists already; nothing was changed") from None
    except (OSError, UnicodeEncodeError) as problem:  # half of a surrogate pair cannot be encoded
        raise UsageError(f"{path} cannot be written: {getattr(problem, 'strerror', problem)}") from None
    return path


@dataclass(frozen=True, slots=True)
class Example:
    """One call: its parameters, and the expected result or a part of the expected error message.

    With `calls`, the tools that the script calls are not run: each call gets the recorded answer.
    """

    title: str
    params: dict[str, Any]
    result: Any = None
    error: str | None = None
    calls: tuple[dict[str, Any], ...] | None = None
    """Of each call: tool and arguments, and result, or error and code."""

    def to_text(self) -> str:
        """What a file with this example contains."""
        item = {"name": self.title, "params": self.params, "result": self.result, "calls": list(self.calls or ())}
        return json.dumps([to_jsonable(item)], ensure_ascii=False, indent=2) + "\n"


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
    except (ValueError, RecursionError) as problem:
        raise ConfigError(f"{file.name} is not valid JSON: {problem}") from None
    if not isinstance(data, list):
        raise ConfigError(f'{file.name} must be a list of {{"params": {{…}}, "result": …}}')
    return tuple(_example(item, f"{file.name}[{place}]") for place, item in enumerate(data))


def run_example(library: ScriptLibrary, script: LoadedScript, example: Example) -> str | None:
    """How the result differs from the expected one; None if it does not."""
    assert script.tool is not None
    message: str | None
    try:
        tools = None if example.calls is None else _recorded_tools(library, example.calls)
        run = library.execute(script, script.tool.bind(example.params), tools=tools)
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


def _recorded_tools(library: ScriptLibrary, calls: Sequence[dict[str, Any]]) -> Toolbox:
    """Tools that give the recorded answers, each once. They have the schemas of the project's tools of these names."""
    unanswered, lock = list(calls), threading.Lock()

    def answer(path: str, arguments: dict[str, Any]) -> Any:
        def fits(call: dict[str, Any]) -> bool:
            return call["tool"] == path and bool(arguments.items() <= call["arguments"].items())

        with lock:
            call = next(filter(fits, unanswered), None)
            if call is None:
                raise ToolError(f"the example has no answer for this call: {path} {short(arguments, _SHOWN)}")
            unanswered.remove(call)
        if call.get("error") is not None:
            raise ToolError(call["error"], code=call["code"])
        return call.get("result")

    def stand_in(path: str) -> Tool:
        real = library.tools.get(path)
        parameters = {"type": "object"} if real is None else real.parameters
        space, _, name = path.rpartition(".")
        call = partial(answer, path)
        return Tool.from_schema(name=name, namespace=space or None, parameters=parameters, call=call, parse_json=False)

    return Toolbox([stand_in(path) for path in dict.fromkeys(call["tool"] for call in calls)])


_EXAMPLE = options(
    Parameter("name", "any"),
    Parameter("params", "table", default={}),
    Parameter("result", "any"),
    Parameter("error", "string"),
    Parameter("calls", "array"),
)
_CALL = options(
    Parameter("tool", "string", required=True),
    Parameter("arguments", "table", default={}),
    Parameter("result", "any"),
    Parameter("error", "string"),
    Parameter("code", "string", default="tool_error"),
)


def _example(item: Any, where: str) -> Example:
    try:
        given = checked(_EXAMPLE, item, "")
        calls = None if given["calls"] is None else [checked(_CALL, call, "") for call in given["calls"]]
    except Wrong as wrong:
        raise ConfigError(f"{where}: {wrong.message.lstrip()}") from None
    if (isinstance(item, dict) and "result" in item) == (given["error"] is not None):
        raise ConfigError(f"{where}: give either result or error")
    recorded = None if calls is None else tuple(map(from_jsonable, calls))
    title = str(given["name"] or short(given["params"], 60))
    return Example(title, given["params"], from_jsonable(given["result"]), given["error"], recorded)
