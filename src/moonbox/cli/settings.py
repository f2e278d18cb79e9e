"""The options that `run` and `repl` share, and the Sandbox that they describe."""

from __future__ import annotations

import functools
import inspect
import re
from dataclasses import dataclass, fields
from pathlib import Path  # noqa: TC003 - read at run time by Typer
from typing import TYPE_CHECKING, Annotated, Any, cast, get_type_hints

import typer

from moonbox.cli.quantities import Quantity, byte_count, count, duration
from moonbox.errors import UsageError
from moonbox.limits import Limits

if TYPE_CHECKING:
    from collections.abc import Callable

    from moonbox.sandbox.decisions import ToolCall
    from moonbox.sandbox.record import CallEntry
    from moonbox.sandbox.sandbox import Sandbox

__all__ = ["PRESETS", "Settings", "with_settings"]

PRESETS = ("default", "quick", "standard", "extended", "untrusted")


def _presets() -> list[str]:
    return list(PRESETS)


def _isolations() -> list[str]:
    return ["process", "inline"]


_OF_LIMITS = re.compile(r"Limits\.(\w+)")


def _flag(field: str) -> str:
    return "--max-calls" if field == "max_tool_calls" else f"--{field.replace('_', '-')}"


def _limit(flag: str, parser: Callable[[str], Quantity], metavar: str, help: str) -> Any:
    return typer.Option(
        flag, parser=_parser(parser), metavar=metavar, help=help, rich_help_panel="Limits", show_default=False
    )


def _parser(parse: Callable[[str], Quantity]) -> Callable[[Any], Quantity]:
    def checked(value: Any) -> Quantity:
        if isinstance(value, Quantity):  # Typer parses what it has parsed before once more
            return value
        try:
            return parse(value)
        except UsageError as problem:
            raise typer.BadParameter(str(problem)) from None

    return checked


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What the options say."""

    tools: Annotated[
        list[str] | None,
        typer.Option(
            "--tools",
            "-t",
            metavar="MODULE:NAME",
            help="What scripts may call: a Python function, a list of them or a Toolbox (crm:tools, crm.py:tools), or "
            "every @tool of a module (crm). May be repeated.",
            show_default=False,
        ),
    ] = None
    isolation: Annotated[
        str,
        typer.Option(
            metavar="process|inline",
            autocompletion=_isolations,
            help="Where scripts run: in a locked-in process, or inline (for scripts that you trust).",
        ),
    ] = "process"
    features: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Open coroutines or metatables to scripts. May be repeated.", show_default=False
        ),
    ] = None
    audit: Annotated[
        str | None,
        typer.Option(
            metavar="PATH|on|off",
            envvar="MOONBOX_AUDIT",
            help="Keep the record of every run in a .db or .jsonl file, or (on) in the one that `moonbox audit` shows.",
            show_default="off",
        ),
    ] = None
    limits: Annotated[
        str,
        typer.Option(
            metavar="PRESET",
            autocompletion=_presets,
            help=f"A set of limits: {', '.join(PRESETS)}. The options below change single ones.",
            rich_help_panel="Limits",
        ),
    ] = "default"
    timeout: Annotated[Quantity | None, _limit("--timeout", duration, "TIME", "Seconds for a whole run.")] = None
    max_calls: Annotated[Quantity | None, _limit("--max-calls", count, "N", "Tool calls in one run.")] = None
    max_operations: Annotated[
        Quantity | None, _limit("--max-operations", count, "N", "Instructions of the virtual machine.")
    ] = None
    max_memory: Annotated[
        Quantity | None, _limit("--max-memory", byte_count, "BYTES", "Memory that a script may hold.")
    ] = None
    max_output: Annotated[Quantity | None, _limit("--max-output", byte_count, "BYTES", "What a script may print.")] = (
        None
    )
    max_string: Annotated[Quantity | None, _limit("--max-string", byte_count, "BYTES", "One string.")] = None
    max_array: Annotated[
        Quantity | None, _limit("--max-array", count, "N", "Elements of one table that enters or leaves.")
    ] = None
    max_depth: Annotated[
        Quantity | None, _limit("--max-depth", count, "N", "Nesting of a value that enters or leaves.")
    ] = None

    def make_limits(self) -> Limits:
        """The preset, with the single limits that were given."""
        given = {
            "timeout": self.timeout,
            "max_tool_calls": self.max_calls,
            "max_operations": self.max_operations,
            "max_memory": self.max_memory,
            "max_output": self.max_output,
            "max_string": self.max_string,
            "max_array": self.max_array,
            "max_depth": self.max_depth,
        }
        changes = {name: quantity.value for name, quantity in given.items() if quantity is not None}
        try:
            return Limits.preset(self.limits, **changes)
        except UsageError as problem:
            raise UsageError(_OF_LIMITS.sub(lambda found: _flag(found[1]), str(problem))) from None

    def make_features(self) -> frozenset[str]:
        """What --features opens, given one by one or in a row."""
        from moonbox.languages.registry import LANGUAGES
        from moonbox.suggest import unknown

        known = {feature for language in LANGUAGES.values() for feature in language.features}
        names = [name for part in self.features or () for name in part.replace(",", " ").split()]
        for name in names:
            if name not in known:
                raise UsageError(f"--features: {unknown('feature', name, known)}")
        return frozenset(names)

    @property
    def trail(self) -> Path | str | None:
        """Where runs are kept, if they are."""
        if self.audit is None or self.audit in ("", "off"):
            return None
        from moonbox.audit.sinks import default_path, names_a_file

        if self.audit == "on":
            return default_path()
        if not names_a_file(self.audit):
            raise UsageError(f"--audit {self.audit}: say on, off, or a path that ends in .db, .sqlite or .jsonl")
        return self.audit

    def open(
        self,
        *,
        language: str,
        approve: Callable[[ToolCall], Any] | None = None,
        on_call: Callable[[CallEntry], None] | None = None,
        audit: Any = None,
    ) -> Sandbox:
        """The Sandbox that the options describe; UsageError says which of them is wrong."""
        from moonbox.cli.toolrefs import load_tools
        from moonbox.sandbox.sandbox import Sandbox

        limits = self.make_limits()
        return Sandbox(
            load_tools(self.tools or ()),
            limits=limits,
            language=language,
            isolation=cast(Any, self.isolation),  # checked there
            lua_features=self.make_features(),
            min_workers=0,
            approve=approve,
            audit=audit,
            on_call=on_call,
        )


def with_settings(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command every option of Settings, in place of its parameter `settings`."""
    hints = get_type_hints(Settings, include_extras=True)
    shared = [
        inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=hints[field.name]
        )
        for field in fields(Settings)
    ]
    signature = inspect.signature(command, eval_str=True)
    own = [parameter for name, parameter in signature.parameters.items() if name != "settings"]

    @functools.wraps(command)
    def called(**given: Any) -> None:
        settings = Settings(**{parameter.name: given.pop(parameter.name) for parameter in shared})
        command(**given, settings=settings)

    vars(called)["__signature__"] = signature.replace(parameters=[*own, *shared])
    called.__annotations__ = {parameter.name: parameter.annotation for parameter in (*own, *shared)}
    return called
