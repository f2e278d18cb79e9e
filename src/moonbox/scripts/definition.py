"""The definition of a tool script (name, description, version, parameters), and the Repl in which a script runs."""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from moonbox.errors import ArgumentError, ToolDefinitionError
from moonbox.limits import Limits
from moonbox.scripts.hostapi.api import HostApi
from moonbox.scripts.hostapi.functions import Parameter, Wrong, checked, options
from moonbox.suggest import nearest
from moonbox.tools.binding import Binder
from moonbox.tools.naming import check_name
from moonbox.tools.toolbox import Toolbox

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from moonbox.audit.records import Run
    from moonbox.sandbox.repl import Repl
    from moonbox.sandbox.sandbox import Sandbox
    from moonbox.scripts.configured import ScriptSettings

# Run after the script itself: returns what it defined, and the names of what else is in the table but functions.
READ_DEFINITION = """
if type(tool) ~= "table" then return { problem = "the global table `tool` is missing" } end
if type(tool.execute) ~= "function" then return { problem = "tool.execute is not a function" } end
local names = {}
for key, value in pairs(tool) do
  if type(value) ~= "function" then names[#names + 1] = tostring(key) end
end
return {
  names = names, name = tool.name, description = tool.description, version = tool.version, parameters = tool.parameters,
  returns = tool.returns, hints = tool.hints, policy = tool.policy, uses = tool.uses,
}
"""

TYPES = ("string", "integer", "number", "boolean", "array", "object")
_SCHEMA_WORDS = ("description", "default", "enum", "items", "properties", "minimum", "maximum", "pattern")
_TOOL = options(
    Parameter("name", "string", required=True),
    Parameter("description", "string", default=""),
    Parameter("version", "string", default=""),
    Parameter("parameters", "any"),
    Parameter("returns", "table"),
    Parameter("hints", "table", default={}),
    Parameter("policy", "any", default="auto"),
    Parameter("uses", "array", default=()),
)
_PARAMETER = options(
    Parameter("name", "string", required=True),
    Parameter("type", "string", default="string", choices=TYPES),
    Parameter("required", "boolean", default=False),
    *(Parameter(word, "array" if word == "enum" else "any") for word in _SCHEMA_WORDS),
)
_MOST_HOST_CALLS = 1000
_LARGEST_FILE = 1_000_000


@dataclass(frozen=True, slots=True)
class ScriptDefinition:
    """A tool as its script describes it."""

    name: str
    description: str
    version: str
    parameters: dict[str, Any]
    returns: dict[str, Any] | None
    hints: dict[str, Any]
    policy: Any
    uses: tuple[str, ...] = ()
    """The tools of the project that it calls."""

    @classmethod
    def from_value(cls, value: Any, settings: ScriptSettings) -> ScriptDefinition:
        """From what READ_DEFINITION returned. Raises ToolDefinitionError if it is invalid."""
        if not isinstance(value, dict) or "problem" in value:
            problem = value.get("problem") if isinstance(value, dict) else "it returned no value"
            raise ToolDefinitionError(
                f"{problem}; a tool script sets tool = {{name = …, description = …, parameters = {{…}}}} "
                "and function tool.execute(params, context)"
            )
        known = [parameter.name for parameter in _TOOL.options]
        misspelled = {name: None for name in value.pop("names", ()) if name not in known and nearest(name, known)}
        try:
            fields = checked(_TOOL, {"name": settings.name, **value, **misspelled}, "tool")
        except Wrong as wrong:
            raise ToolDefinitionError(wrong.message) from None
        if not all(isinstance(item, str) for item in fields["uses"]):
            raise ToolDefinitionError(f"tool.uses must be a list of tool names, not {fields['uses']!r}")
        _check_name(fields["name"], settings)
        return cls(**{**fields, "parameters": parameters_schema(fields["parameters"]), "uses": tuple(fields["uses"])})


def _check_name(name: str, settings: ScriptSettings) -> None:
    """A table of the configuration must have the name of the tool."""
    if settings.configured and name != settings.name:
        raise ToolDefinitionError(
            f"[tools.script.{settings.name}] runs {settings.path.name}, whose tool.name is {name!r}; use one name: "
            f"rename the table to [tools.script.{name}], or change or remove tool.name"
        )
    check_name(name)


def parameters_schema(given: Any) -> dict[str, Any]:
    """The parameters as JSON Schema: from a list of {name=, type=, …}, or a JSON Schema as it is."""
    if given is None or given == {} or given == []:
        return {"type": "object", "properties": {}, "additionalProperties": False}
    if isinstance(given, dict):
        if given.get("type") == "object" or "properties" in given:
            return _with_defaults({"additionalProperties": False, **given})
        raise ToolDefinitionError(
            'tool.parameters must be a list of {name = …, type = …} or a JSON Schema with type = "object"'
        )
    if not isinstance(given, list):
        raise ToolDefinitionError(f"tool.parameters must be a list, not {given!r}")
    properties: dict[str, Any] = {}
    required: list[str] = []
    for index, item in enumerate(given, 1):
        try:
            fields = checked(_PARAMETER, item, "")
        except Wrong as wrong:
            raise ToolDefinitionError(f"tool.parameters[{index}]: {wrong.message.lstrip()}") from None
        name, schema = fields["name"], {word: fields[word] for word in _SCHEMA_WORDS if fields[word] is not None}
        if not name or name in properties:
            problem = f"duplicate parameter {name!r}" if name else "name is missing"
            raise ToolDefinitionError(f"tool.parameters[{index}]: {problem}")
        properties[name] = {"type": fields["type"], **schema}
        if fields["required"] and "default" not in schema:
            required.append(name)
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return _with_defaults(schema)


def _with_defaults(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema with each default in the form that an argument has: an empty table may be a list."""
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return schema
    parts = {name: part for name, part in properties.items() if isinstance(part, dict) and "default" in part}
    defaults = {name: part["default"] for name, part in parts.items()}
    try:
        bound = Binder({**schema, "required": []}).bind(defaults, "") if defaults else {}
    except ArgumentError as problem:
        why = problem.message.partition("- ")[2].partition("\n")[0]
        raise ToolDefinitionError(f"tool.parameters: the default of {why}") from None
    return {**schema, "properties": properties | {name: {**parts[name], "default": bound[name]} for name in parts}}


def read_source(path: Path) -> str:
    """The text of a script file. Raises ToolDefinitionError if it cannot be used."""
    try:
        # NONBLOCK: opening a named pipe must not wait for a writer.
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise ToolDefinitionError(f"{path} is not a file")
            data = file.read(_LARGEST_FILE + 1)
        if len(data) > _LARGEST_FILE:
            raise ToolDefinitionError(f"{path} is larger than {_LARGEST_FILE:,} bytes")
        return data.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    except FileNotFoundError:
        raise ToolDefinitionError(f"{path} does not exist") from None
    except UnicodeDecodeError:
        raise ToolDefinitionError(f"{path} is not UTF-8") from None
    except OSError as problem:
        raise ToolDefinitionError(f"{path} cannot be read: {problem.strerror or problem}") from None


def file_stamp(path: Path) -> tuple[int, int]:
    """The modification time and size of a file; (0, 0) if it is missing."""
    try:
        status = path.stat()
    except OSError:
        return (0, 0)
    return (status.st_mtime_ns, status.st_size)


@contextmanager
def script_repl(
    sandbox: Sandbox,
    settings: ScriptSettings,
    before_write: Callable[[Run], Run] = lambda run: run,
    tools: Toolbox | None = None,
    section: str = "",
) -> Iterator[Repl]:
    """A fresh Repl for one execution of one script; the records of its runs contain no secrets.

    `before_write` may add to each record. `tools` are those that the script may call, as often as a script of the
    Sandbox.
    """
    most = sandbox.limits.max_tool_calls if tools else _MOST_HOST_CALLS
    with (
        HostApi(settings.grants, name=settings.name, section=section) as api,
        sandbox.repl(
            limits=Limits(timeout=settings.timeout, max_tool_calls=most),
            toolbox=tools or Toolbox(),
            before_write=lambda run: before_write(api.redact_run(run)),
            check=False,
        ) as repl,
    ):
        api.hide(settings.hidden)
        define_host_functions(repl, api)
        yield repl


def define_host_functions(repl: Repl, api: HostApi) -> None:
    """Define every host function. A function that is not granted raises an error that names the grant to add."""
    for name, function in {**api.absent, **api.functions}.items():
        repl.define(name, function, doc=function.doc, cleaned=False)  # a granted variable may be a secret elsewhere
