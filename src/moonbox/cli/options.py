"""Options that several commands share, as Typer reads them from the command line."""

from __future__ import annotations

import functools
import inspect
import math
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from moonbox.cli.run_options import (
    CommandRunOptions,
    feature_names,
    json_or_text,
    option_name,
    read_json,
)
from moonbox.errors import UsageError
from moonbox.languages.registry import LANGUAGES
from moonbox.limits import PRESETS

if TYPE_CHECKING:
    from moonbox.config import Config
    from moonbox.project.assembly import Assembly
    from moonbox.sandbox.sandbox import Sandbox
    from moonbox.tools.tool import Tool


def option(*names: str, **settings: Any) -> Any:
    """An option whose default is not shown in the help, but for one that `show_default` gives."""
    return typer.Option(*names, **{"show_default": False, **settings})


def argument(**settings: Any) -> Any:
    """An argument whose default is not shown in the help."""
    return typer.Argument(show_default=False, **settings)


def flag(*names: str, help: str) -> Any:
    """An option without a value."""
    return typer.Option(*names, metavar="", help=help)


ConfigFile = Annotated[
    Path | None,
    option("--config", "-c", help="The configuration file; by default the nearest moonbox.toml.", metavar="FILE"),
]
Place = Annotated[
    str | None,
    option(
        "--journal",
        help="The journal: a .db file or a postgresql:// database; by default that of [journal] in moonbox.toml.",
        metavar="PLACE",
        envvar="MOONBOX_JOURNAL",
    ),
]
Db = Annotated[
    Path | None,
    option(
        "--db",
        help="The trail: a .db or .jsonl file; by default that of [audit] in moonbox.toml, or your own.",
        metavar="PATH",
    ),
]
McpConfig = Annotated[
    list[Path] | None,
    option(
        "--mcp-config",
        help="A file with the mcpServers of another client, to add to moonbox. Repeatable.",
        metavar="FILE",
    ),
]
Tools = Annotated[
    list[str] | None,
    option(
        "--tools",
        "-t",
        metavar="MODULE:NAME",
        help="Python tools: a function, a list of functions, a Toolbox or a Sandbox with its own functions (crm:tools, "
        "crm.py:box), or every @tool of a module (crm). Repeatable.",
    ),
]
Json = Annotated[bool, flag("--json", help="Print JSON.")]
Labels = Annotated[
    list[str] | None, option("--label", metavar="NAME=TEXT", help="Only those with this label; may be repeated.")
]
Wait = Annotated[float, typer.Option("--wait", help="Seconds to wait for MCP servers to start.", metavar="SECONDS")]


def assemble_with(
    config: Config, tools: Sequence[str] | None, mcp_config: Sequence[Path] | None, **hooks: Any
) -> Assembly:
    """The project with the tools of --tools, and with the functions of their Sandboxes, and of --mcp-config."""
    from moonbox.project.assembly import assemble
    from moonbox.project.python_tools import load_tools

    boxes: list[Sandbox] = []
    assembly = assemble(config, tools=load_tools(tools or (), boxes=boxes), mcp_config=mcp_config or [], **hooks)
    for box in boxes:
        assembly.sandbox.define_as(box)
    return assembly


# Quantities as people type them: `10s`, `64MB`, `none`


_NUMBER = re.compile(r"\s*([0-9][0-9_]*(?:\.[0-9]+)?)\s*([a-zµ]*)\s*", re.IGNORECASE)
_SECONDS = {"": 1, "s": 1, "ms": 0.001, "m": 60, "min": 60, "h": 3600}
_BYTES = {"": 1, "b": 1, "k": 1024, "kib": 1024, "kb": 1000, "m": 1024**2, "mib": 1024**2, "mb": 1000**2}
_BYTES |= {"g": 1024**3, "gib": 1024**3, "gb": 1000**3}
_TIMES = {"": 1, "k": 1000, "m": 1_000_000}


def _quantity(units: Mapping[str, float], wanted: str, text: str, *, whole: bool = True) -> float:
    """What a person typed: a number with one of these units; infinite for `none`. UsageError says what is `wanted`."""
    if text.strip().lower() == "none":
        return math.inf
    number = _NUMBER.fullmatch(text)
    factor = units.get(number[2].lower()) if number else None
    if number is None or factor is None:
        raise UsageError(f"'{text}' is not a {wanted}")
    value = float(number[1]) * factor
    if value == math.inf or (whole and not value.is_integer()):
        raise UsageError(f"'{text}' is not a {wanted}")
    return int(value) if whole else value


duration = functools.partial(_quantity, _SECONDS, "duration; write for example 10, 500ms, 2m or none", whole=False)
byte_count = functools.partial(_quantity, _BYTES, "number of bytes; write for example 65536, 64k, 64MiB or 64MB")
count = functools.partial(_quantity, _TIMES, "whole number; write for example 50, 10_000, 10k or none")


# Arguments of a tool


def parse_arguments(given: Sequence[str], tool: Tool, name: str) -> dict[str, Any]:
    """The arguments of a call: one JSON object, or key=value pairs that fit the tool's schema.

    In a pair, a value is text where the schema says string, else JSON where it is valid JSON. `name` is the option or
    argument that the message of a UsageError names.
    """
    if len(given) == 1 and given[0].lstrip().startswith("{"):
        try:
            return dict(read_json(given[0]))
        except ValueError as problem:
            raise UsageError(f"{name} is not valid JSON: {problem}") from None
    properties = tool.parameters.get("properties", {})
    arguments: dict[str, Any] = {}
    for item in given:
        key, equals, text = item.partition("=")
        if not equals or not key:
            raise UsageError(f"{name} must be key=value or one JSON object, not '{item}'")
        part = properties.get(key)
        is_text = isinstance(part, dict) and part.get("type") == "string"
        arguments[key] = text if is_text else json_or_text(text)
    return arguments


# The options of `run` and `repl`


def language_names() -> list[str]:
    """The names that complete --language."""
    return list(LANGUAGES)


Language = Annotated[
    str | None,
    option(
        metavar="NAME",
        help="The language of scripts; by default that of the file's suffix, or of moonbox.toml.",
        autocompletion=language_names,
    ),
]
_LIMITS: Mapping[str, tuple[Callable[[str], float], str, str]] = {
    "timeout": (duration, "TIME", "Seconds for a whole run."),
    "max_tool_calls": (count, "N", "Tool calls in one run."),
    "max_operations": (count, "N", "Instructions of the virtual machine."),
    "max_memory": (byte_count, "BYTES", "Memory of a script."),
    "max_output": (byte_count, "BYTES", "Printed output."),
    "max_string": (byte_count, "BYTES", "Length of one string."),
    "max_array": (count, "N", "Elements of one table that enters or leaves a script."),
    "max_depth": (count, "N", "Nesting of a value that enters or leaves a script."),
    "max_source": (byte_count, "BYTES", "Length of one script."),
}
"""How each limit is typed, and what it limits."""


def _limit(name: str) -> Any:
    parse, metavar, help = _LIMITS[name]

    def parsed(value: str | float) -> float:
        if not isinstance(value, str):  # Typer calls the parser again with a parsed value
            return value
        try:
            return parse(value)
        except UsageError as problem:
            raise typer.BadParameter(str(problem)) from None

    settings = option(option_name(name), parser=parsed, metavar=metavar, help=help, rich_help_panel="Limits")
    return Annotated[float | None, settings]


RUN_OPTIONS: Mapping[str, Any] = {
    "tools": Tools,
    "config": ConfigFile,
    "no_config": Annotated[bool, flag("--no-config", help="Without the nearest moonbox.toml.")],
    "yes": Annotated[bool, flag("--yes", help="Let scripts call tools that may delete or overwrite.")],
    "wait_for_approval": Annotated[
        bool,
        flag("--wait-for-approval", help="With a journal: wait for `moonbox approvals answer` without a terminal."),
    ],
    "isolation": Annotated[
        str | None,
        option(
            metavar="process|inline",
            autocompletion=lambda: ["process", "inline"],
            show_default="process",
            help="Where scripts run: in a locked-in process, or inline (only for scripts that you trust).",
        ),
    ],
    "features": Annotated[
        list[str] | None,
        option(metavar="NAME", help="Allow coroutines or metatables. Repeatable.", autocompletion=feature_names),
    ],
    "audit": Annotated[
        str | None,
        typer.Option(
            metavar="PATH|on|off",
            envvar="MOONBOX_AUDIT",
            autocompletion=lambda: ["on", "off"],
            help="Record every run in a .db or .jsonl file, or (on) in your own trail; by default as [audit] in "
            "moonbox.toml says.",
            show_default="off",
        ),
    ],
    "journal": Annotated[
        str | None,
        option(
            help="Take runs down in a .db file or a postgresql:// database, so that they outlive this process.",
            metavar="PLACE",
            envvar="MOONBOX_JOURNAL",
        ),
    ],
    "limits": Annotated[
        str | None,
        option(
            metavar="PRESET",
            autocompletion=lambda: ["default", *PRESETS],
            show_default="default",
            help=f"A set of limits: {', '.join(['default', *PRESETS])}. The options below change single ones.",
            rich_help_panel="Limits",
        ),
    ],
}
"""The fields of CommandRunOptions as options of a command, but for `changes`: each limit has an option of its own."""


def with_run_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command every option of CommandRunOptions, in place of its parameter `options`."""
    defaults = CommandRunOptions()
    shared = [_keyword(name, getattr(defaults, name), annotation) for name, annotation in RUN_OPTIONS.items()]
    shared += [_keyword(name, None, _limit(name)) for name in _LIMITS]
    signature = inspect.signature(command, eval_str=True)
    own = [parameter for name, parameter in signature.parameters.items() if name != "options"]

    @functools.wraps(command)
    def called(**given: Any) -> None:
        limits = {name: given.pop(name) for name in _LIMITS}
        changes = {name: None if limit == math.inf else limit for name, limit in limits.items() if limit is not None}
        options = CommandRunOptions(**{name: given.pop(name) for name in RUN_OPTIONS}, changes=changes)
        command(**given, options=options)

    vars(called)["__signature__"] = signature.replace(parameters=[*own, *shared])
    called.__annotations__ = {parameter.name: parameter.annotation for parameter in (*own, *shared)}
    return called


def _keyword(name: str, default: Any, annotation: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
