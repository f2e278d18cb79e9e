"""The library: loads tool scripts in the sandbox, keeps them up to date, and makes tools of them."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moonbox.audit.chain import digest
from moonbox.config import Config
from moonbox.errors import ConfigError, MoonboxError, ToolDefinitionError, ToolError
from moonbox.limits import Limits
from moonbox.scripts.configured import ScriptSettings, ToolsSettings
from moonbox.scripts.definition import READ_DEFINITION, ScriptDefinition
from moonbox.scripts.environment import file_stamp, read_source, script_repl
from moonbox.tools.hints import Hints
from moonbox.tools.tool import Tool
from moonbox.tools.toolbox import Toolbox

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping

    from moonbox.audit.records import Run
    from moonbox.audit.sinks import Sink
    from moonbox.sandbox.sandbox import Sandbox
    from moonbox.scripts.hostapi.api import HostApi

__all__ = ["LoadedScript", "ScriptLibrary"]

_LOAD_LIMITS = Limits(timeout=5.0, max_operations=5_000_000, max_tool_calls=0)
_EXECUTE = "return tool.execute(params, context)"


@dataclass(frozen=True, slots=True)
class LoadedScript:
    """A tool script after loading: with its tool, or with the problem that it has."""

    settings: ScriptSettings
    source: str = ""
    stamp: tuple[int, int] = (0, 0)
    definition: ScriptDefinition | None = None
    tool: Tool | None = None
    problem: str | None = None


class ScriptLibrary:
    """Tool scripts as tools. A script that is broken, endless or hostile costs its own tool and nothing else.

    `context` holds what scripts find as `context.<name>` beside `context.config`: functions or values.
    """

    def __init__(
        self,
        settings: ToolsSettings,
        *,
        sandbox: Sandbox | None = None,
        audit: Sink | None = None,
        context: Mapping[str, Any] | None = None,
        make_api: Callable[..., HostApi] | None = None,
    ) -> None:
        from moonbox.sandbox.sandbox import Sandbox

        self.settings = settings
        self.toolbox = Toolbox()
        self._own = sandbox is None
        self._sandbox = sandbox or Sandbox(audit=audit)
        self._context = dict(context or {})
        self._make_api = make_api
        self._lock = threading.Lock()
        self._scripts: dict[str, LoadedScript] = {}
        self.refresh()

    @classmethod
    def from_config(cls, config: Config | str | os.PathLike[str] | Mapping[str, Any], **options: Any) -> ScriptLibrary:
        """From moonbox.toml, its path, or the [tools] table as a dict."""
        if isinstance(config, dict):
            return cls(ToolsSettings.from_dict(config, Path.cwd()), **options)
        if not isinstance(config, Config):
            config = Config.load(config)  # type: ignore[arg-type]  # the dict was handled above
        return cls(ToolsSettings.from_config(config), **options)

    @property
    def scripts(self) -> tuple[LoadedScript, ...]:
        """Every script, with its tool or its problem."""
        return tuple(self._scripts.values())

    def refresh(self) -> bool:
        """Load new and changed scripts, drop removed ones; whether there were any."""
        with self._lock:
            wanted = self._wanted()
            changed = False
            for name in [name for name in self._scripts if name not in wanted]:
                del self._scripts[name]
                changed = True
            for name, settings in wanted.items():
                before = self._scripts.get(name)
                if before is not None and before.settings == settings and before.stamp == file_stamp(settings.path):
                    continue
                self._scripts[name] = self._load(settings)
                changed = True
            if changed:
                self._publish()
            return changed

    def execute(self, name: str, arguments: Mapping[str, Any]) -> Run:
        """Run one script's tool with arguments that have been validated; the whole Run."""
        return self._execute(self._scripts[name], arguments)

    def close(self) -> None:
        if self._own:
            self._sandbox.close()

    def __enter__(self) -> ScriptLibrary:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Finding and loading

    def _wanted(self) -> dict[str, ScriptSettings]:
        """Scripts by name: those in folders first, so that a section of its own has the last word."""
        wanted: dict[str, ScriptSettings] = {}
        for folder in self.settings.folders:
            if not folder.is_dir():
                raise ConfigError(f"[tools] folders: {folder} does not exist or is not a folder")
            for path in sorted(folder.glob("*.lua")):
                wanted.setdefault(path.stem, ScriptSettings(path.stem, path.resolve()))
        own = {settings.path for settings in self.settings.scripts}
        wanted = {name: settings for name, settings in wanted.items() if settings.path not in own}
        wanted.update({settings.name: settings for settings in self.settings.scripts})
        return wanted

    def _load(self, settings: ScriptSettings) -> LoadedScript:
        stamp = file_stamp(settings.path)
        source = ""
        try:
            source = read_source(settings.path)
            definition = self._define(settings, source)
            tool = self._make_tool(settings, definition, source)
        except MoonboxError as problem:
            return LoadedScript(settings, source, stamp, problem=str(problem))
        return LoadedScript(settings, source, stamp, definition, tool)

    def _define(self, settings: ScriptSettings, source: str) -> ScriptDefinition:
        with self._sandbox.repl(limits=_LOAD_LIMITS) as repl:
            for step in (source, READ_DEFINITION):
                run = repl.run(step)
                if run.error is not None:
                    raise ToolDefinitionError(f"{settings.path.name} cannot be loaded: {run.error}")
            return ScriptDefinition.from_value(run.value, settings.name)

    def _make_tool(self, settings: ScriptSettings, definition: ScriptDefinition, source: str) -> Tool:
        def call(arguments: dict[str, Any]) -> Any:
            return self._value(settings.name, arguments)

        return Tool.from_schema(
            name=settings.name,
            description=definition.description,
            parameters=definition.parameters,
            returns=definition.returns,
            hints=Hints.of(definition.hints),
            policy=definition.policy,
            call=call,
            timeout=settings.timeout + 1.0,  # the script's own limit comes first and says more
            meta={"version": definition.version, "script": str(settings.path), "source": digest(source.encode())},
        )

    def _publish(self) -> None:
        tools = {item.tool.path: item.tool for item in self._scripts.values() if item.tool is not None}
        for path in self.toolbox.paths():
            if path not in tools:
                self.toolbox.remove(path)
        self.toolbox.add(list(tools.values()), replace=True)

    # Executing

    def _value(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """The tool's result; a failed run becomes a ToolError."""
        run = self.execute(name, arguments)
        if run.error is None:
            return run.value
        error = run.error
        raise ToolError(
            error.message if error.kind == "tool" else str(error),
            code=error.code or (f"limit_{error.limit}" if error.limit else error.kind),
            retryable=error.retryable or error.limit == "time",
            data=error.data if isinstance(error.data, dict | list | str | int | float) else None,
            tool=name,
            detail=error.traceback,
        )

    def _execute(self, script: LoadedScript, arguments: Mapping[str, Any]) -> Run:
        """In a fresh environment: load the script, then call tool.execute."""
        settings = script.settings
        if script.tool is None:
            raise ToolError(f"the tool script {settings.name} cannot be used: {script.problem}", code="unavailable")
        section = f"tools.script.{settings.name}"
        with script_repl(self._sandbox, settings, section=section, make_api=self._make_api) as repl:
            repl.define("params", dict(arguments))
            repl.define("context.config", dict(settings.config))
            repl.define("context.tool", settings.name)
            for name, value in self._context.items():
                repl.define(f"context.{name}", value)
            loaded = repl.run(script.source)
            return loaded if loaded.error is not None else repl.run(_EXECUTE)
