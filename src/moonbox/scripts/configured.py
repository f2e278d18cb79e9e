"""Configured tool scripts: what [tools] describes, with paths resolved and grants checked."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from moonbox.config.file import resolve_path
from moonbox.config.reader import read, table
from moonbox.config.sections import DEFAULT_STORE, DEFAULT_TIMEOUT, ScriptTable, ToolsTable, ToolTable
from moonbox.config.variables import unset_problem
from moonbox.errors import ConfigError, ToolDefinitionError
from moonbox.scripts.hostapi.grants import Grants
from moonbox.tools.hints import RISKS

if TYPE_CHECKING:
    from pathlib import Path

    from moonbox.config import Config
    from moonbox.tools.tool import Tool

_LOG = logging.getLogger("moonbox.scripts")


@dataclass(frozen=True, slots=True)
class ScriptSettings:
    """The settings of one script: its path, timeout, grants and own configuration."""

    name: str
    """The tool's name. Before a script in a folder is loaded, the name of its file."""
    path: Path
    timeout: float = DEFAULT_TIMEOUT
    grants: Grants = field(default_factory=Grants)
    config: Mapping[str, Any] = field(default_factory=dict)
    """Every further key of its table; scripts find it as context.config."""
    tools: tuple[str, ...] = ()
    """Tools of the project that it may call, of those in its `tool.uses`: names and patterns."""
    direct: bool = False
    """Code mode shows it to the model as a tool of its own, too."""
    configured: bool = False
    """It has a table of its own, which has the tool's name."""
    hidden: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Values of variables, by name, that its results and records must not contain."""
    problem: str | None = None
    """Why it cannot be used: a variable in its table is not set."""

    @classmethod
    def from_dict(
        cls,
        name: str,
        data: Any,
        folder: Path,
        *,
        section: str = "",
        protected: Sequence[str] = (),
        hidden: Mapping[str, str] | None = None,
    ) -> ScriptSettings:
        section = section or f"tools.script.{name}"
        given = ScriptTable.from_dict(data, section)
        try:
            grants = Grants.from_dict(
                vars(given), folder, protected=(*protected, str(resolve_path(folder, given.path)))
            )
        except ConfigError as problem:
            raise ConfigError(f"[{section}] {problem}") from None
        path = resolve_path(folder, given.path).resolve()
        settings = {key: getattr(given, key) for key in ("timeout", "config", "tools", "direct")}
        return cls(name, path, grants=grants, configured=True, hidden=hidden or {}, **settings)


@dataclass(frozen=True, slots=True)
class ToolsSettings:
    """The section [tools]: single scripts, and folders of them."""

    scripts: tuple[ScriptSettings, ...] = ()
    folders: tuple[Path, ...] = ()
    saved: Path | None = None
    """The folder of saved scripts, which need not exist."""
    table: ToolsTable = field(default_factory=ToolsTable)
    """What needs no resolving."""
    own: Mapping[str, ToolTable] = field(default_factory=dict)
    """The tables [tools.<name>], by the paths of the tools."""

    @classmethod
    def from_config(cls, config: Config) -> ToolsSettings:
        with config.naming_file():
            return cls.from_dict(
                config.section("tools"), config.folder, protected=protected_paths(config), hidden=config.secrets
            )

    @classmethod
    def from_dict(
        cls,
        data: Mapping[str, Any],
        folder: Path,
        *,
        protected: Sequence[str] = (),
        hidden: Mapping[str, str] | None = None,
    ) -> ToolsSettings:
        """`protected` are paths that no script may write; `hidden` are values that no result may contain."""
        own = {key: item for key, item in data.items() if isinstance(item, Mapping) and item.keys() & {"retry", "undo"}}
        data = {key: item for key, item in data.items() if key not in own}
        settings = read(ToolsTable, {**data, "script": {}}, "tools")
        more: Any = {"protected": (*protected, *_script_paths(data, folder)), "hidden": hidden}
        scripts = table(data.get("script", {}), "tools.script")
        return cls(
            tuple(_script(name, item, folder, more) for name, item in scripts.items()),
            tuple(resolve_path(folder, item).resolve() for item in settings.folders),
            None if settings.saved is None else resolve_path(folder, settings.saved).resolve(),
            settings,
            {name: read(ToolTable, item, f"tools.{name}") for name, item in own.items()},
        )

    @property
    def restricts(self) -> bool:
        """Whether `adapted` has anything to do."""
        return bool(self.own or self.table.disabled or self.table.max_risk is not None)

    def adapted(self, tool: Tool) -> Tool | bool:
        """The tool as it is used here; False for one that cannot be used."""
        own = self.own.get(tool.path)
        if own is None or not self.allows(tool):
            return self.allows(tool)
        changed = tool if own.undo in (None, tool.undo) else tool.with_(undo=own.undo)
        if own.retry not in (None, tool.retry):
            try:
                # A Context of ours carries no key to a service.
                if not tool.hints.repeatable and tool.plan.converter is None:
                    raise ToolDefinitionError("its source does not call it read-only or idempotent")
                changed = changed.with_(retry=own.retry)
            except ToolDefinitionError as problem:
                message = f"[tools.{tool.path}.retry] {problem}"
                if "mcp_server" not in tool.meta:
                    raise ConfigError(message) from None
                _LOG.warning("%s", message)  # the server may change what it says at any time
        return changed is tool or changed

    def allows(self, tool: Tool) -> bool:
        """Whether a tool can be used, wherever it comes from."""
        most = len(RISKS) if self.table.max_risk is None else RISKS.index(self.table.max_risk)
        if tool.hints.risk is not None and RISKS.index(tool.hints.risk) > most:
            return False
        names = (tool.path, tool.name, f"category:{tool.hints.category}")
        return not any(fnmatchcase(name, pattern) for name in names for pattern in self.table.disabled)


def _script(name: str, data: Any, folder: Path, more: Mapping[str, Any]) -> ScriptSettings:
    """One script. Where a variable of its table is not set, only that script cannot be used."""
    if (problem := unset_problem(data)) is None:
        return ScriptSettings.from_dict(name, data, folder, **more)
    path = str(_table(data).get("path") or f"{name}.lua")
    return ScriptSettings(name, resolve_path(folder, path).resolve(), configured=True, problem=problem)


def protected_paths(config: Config) -> tuple[str, ...]:
    """Paths that no script may write: the configuration, scripts, trail, journal, knowledge base, programs of servers.

    Invalid sections are skipped; the code that reads them reports the errors.
    """
    folder, paths = config.folder, [str(config.path)] if config.path is not None else []
    for section, default in (("audit", None), ("journal", None), ("knowledge", str(DEFAULT_STORE))):
        path = _table(config.data.get(section)).get("path", default)
        if isinstance(path, str):
            paths.append(str(resolve_path(folder, path.removeprefix("sqlite:").removeprefix("jsonl:"))))
    for source in _table(_table(config.data.get("knowledge")).get("sources")).values():
        if isinstance(path := _table(source).get("path"), str) and path.endswith(".lua"):
            paths.append(str(resolve_path(folder, path)))
    for server in _table(_table(config.data.get("mcp")).get("servers")).values():
        paths += _programs(_table(server), folder)
    for api in _table(config.data.get("openapi")).values():
        paths.append(str(resolve_path(folder, str(_table(api).get("spec")))))
    return tuple(dict.fromkeys([*paths, *_script_paths(_table(config.data.get("tools")), folder)]))


def _script_paths(tools: Mapping[str, Any], folder: Path) -> list[str]:
    """The scripts and folders of [tools]."""
    folders = tools.get("folders")
    scripts = [_table(script).get("path") for script in _table(tools.get("script")).values()]
    places = [*(folders if isinstance(folders, list | tuple) else ()), tools.get("saved"), *scripts]
    return [str(resolve_path(folder, item)) for item in places if isinstance(item, str)]


def _programs(server: Mapping[str, Any], folder: Path) -> list[str]:
    """The files that the command of a server names."""
    cwd = resolve_path(folder, str(server.get("cwd") or "."))
    command, args = server.get("command"), server.get("args")
    files = [resolve_path(folder, command)] if isinstance(command, str) and "/" in command else []
    files += [cwd / word for word in (args if isinstance(args, list) else ()) if isinstance(word, str) and word]
    return [str(file) for file in files if "\0" not in str(file) and file.is_file()]


def _table(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
