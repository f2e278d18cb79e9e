"""Authoring of tool scripts: new files from templates, and the examples beside a script with their expected results."""

from __future__ import annotations

import json
import re
import threading
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any

from moonbox.audit.compact import short
from moonbox.config import FILE_NAME
from moonbox.errors import ArgumentError, ConfigError, ToolDefinitionError, ToolError, UsageError
from moonbox.scripts.definition import read_source
from moonbox.suggest import unknown
from moonbox.tools.tool import Tool
from moonbox.tools.toolbox import Toolbox
from moonbox.values import from_jsonable, to_jsonable

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from moonbox.scripts.library import LoadedScript, ScriptLibrary

_KEYS = ("name", "params", "result", "error", "calls")
_CALL_KEYS = ("tool", "arguments", "result", "error", "code")
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
    """One call: its parameters, and the expected result or a part of the expected error message.

    With `calls`, the tools that the script calls are not run: each call gets the recorded answer.
    """

    title: str
    params: dict[str, Any]
    result: Any = None
    error: str | None = None
    calls: tuple[dict[str, Any], ...] | None = None
    """Of each call: tool and arguments, and result, or error and code."""


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
        tools = None if example.calls is None else _recorded(library, example.calls)
        run = library.execute_script(script, script.tool.bind(example.params), tools=tools)
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


def example_text(examples: Sequence[Example]) -> str:
    """What the file of these examples contains."""
    items = []
    for example in examples:
        outcome = {"result": to_jsonable(example.result)} if example.error is None else {"error": example.error}
        calls = {} if example.calls is None else {"calls": to_jsonable(list(example.calls))}
        items.append({"name": example.title, "params": to_jsonable(example.params), **outcome, **calls})
    return json.dumps(items, ensure_ascii=False, indent=2) + "\n"


def _recorded(library: ScriptLibrary, calls: Sequence[dict[str, Any]]) -> Toolbox:
    """Tools that give the recorded answers, each once. They have the schemas of the project's tools of these names."""
    open_calls = [dict(call) for call in calls]
    lock = threading.Lock()

    def stand_in(path: str) -> Tool:
        def call(arguments: dict[str, Any]) -> Any:
            with lock:
                for index, known in enumerate(open_calls):
                    if known["tool"] == path and arguments.items() <= known["arguments"].items():
                        answer = open_calls.pop(index)
                        break
                else:
                    raise ToolError(f"the example has no answer for this call: {path} {short(arguments, _SHOWN)}")
            if "error" in answer:
                raise ToolError(answer["error"], code=answer.get("code", "tool_error"))
            return answer.get("result")

        real = library.tools.get(path)
        space, _, name = path.rpartition(".")
        parameters = real.parameters if real is not None else {"type": "object"}
        return Tool.from_schema(name=name, namespace=space or None, parameters=parameters, call=call, parse_json=False)

    return Toolbox([stand_in(path) for path in dict.fromkeys(call["tool"] for call in calls)])


def _calls(item: Any, where: str) -> tuple[dict[str, Any], ...] | None:
    if item is None:
        return None
    for call in item if isinstance(item, list) else [None]:
        if not isinstance(call, dict) or not isinstance(call.get("tool"), str):
            raise ConfigError(f'{where}: calls must be a list of {{"tool": "…", "arguments": {{…}}, "result": …}}')
        for key in call:
            if key not in _CALL_KEYS:
                raise ConfigError(f"{where}: {unknown('key', key, _CALL_KEYS)}")
        if not isinstance(call.setdefault("arguments", {}), dict) or not isinstance(call.get("error", ""), str):
            raise ConfigError(f"{where}: the arguments of a call must be an object, and its error text")
    return tuple(from_jsonable(call) for call in item)


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
    calls = _calls(item.get("calls"), where)
    return Example(str(item.get("name") or short(params, 60)), params, item.get("result"), error, calls)
