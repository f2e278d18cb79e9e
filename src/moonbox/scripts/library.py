"""The library: loads tool scripts in the sandbox, keeps them up to date, and makes tools of them."""

from __future__ import annotations

import contextlib
import re
import threading
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import structs

from moonbox.audit.chain import digest
from moonbox.config import Config
from moonbox.errors import ConfigError, MoonboxError, ToolDefinitionError, ToolError
from moonbox.languages.explanations import without_line
from moonbox.limits import Limits
from moonbox.scripts.configured import ScriptSettings, ToolsSettings
from moonbox.scripts.definition import READ_DEFINITION, ScriptDefinition, file_stamp, read_source, script_repl
from moonbox.tools.function import Context
from moonbox.tools.hints import Hints
from moonbox.tools.tool import Tool
from moonbox.tools.toolbox import Toolbox

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping

    from moonbox.audit.records import Run
    from moonbox.audit.sinks import Sink
    from moonbox.errors import ScriptError
    from moonbox.sandbox.sandbox import Sandbox
    from moonbox.scripts.hostapi.api import HostApi

_LOAD_LIMITS = Limits(timeout=5.0, max_operations=5_000_000, max_tool_calls=0)
_EXECUTE = "return tool.execute(params, context)"
_ENCLOSED = "do local load = function(...) {source}\nend load(...) end"
"""Inside a function, so that its locals and its return end with it. On one line with it: the numbers of lines stay."""
_SHADOWED = re.compile(r"^\s*local\s[^=\n]*\b(?:params|context)\b", re.MULTILINE)
"""Locals that would stand before what the call is given."""


@dataclass(frozen=True, slots=True)
class LoadedScript:
    """A tool script after loading: with its tool, or with the problem that it has."""

    settings: ScriptSettings
    source: str = ""
    stamp: tuple[int, int] = (0, 0)
    definition: ScriptDefinition | None = None
    tool: Tool | None = None
    problem: str | None = None
    """Why it cannot be used now; it may still have the tool that it was before it broke."""
    error: ScriptError | None = None
    """What went wrong in the script, where that is the problem."""
    enclosed: bool = False
    """The call cannot simply follow it: it ends with a return, or has locals of the names that the call uses."""


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
        self._closing = contextlib.ExitStack()
        self._sandbox = sandbox or Sandbox(audit=audit)
        self._context = dict(context or {})
        self._make_api = make_api
        self._lock = threading.Lock()
        self._scripts: dict[str, LoadedScript] = {}
        self.refresh()

    @classmethod
    def from_config(
        cls,
        config: Config | str | os.PathLike[str] | Mapping[str, Any],
        *,
        settings: ToolsSettings | None = None,
        **options: Any,
    ) -> ScriptLibrary:
        """From moonbox.toml, its path, or the [tools] table as a dict; `settings` replaces what is in there."""
        if settings is not None:
            return cls(settings, **options)
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
                loaded = self._load(settings)
                if loaded.problem is not None and before is not None:
                    # Calls of it then report the problem, not an unknown tool.
                    loaded = replace(loaded, definition=before.definition, tool=before.tool)
                self._scripts[name] = loaded
                changed = True
            if changed:
                self._publish()
            return changed

    def execute(
        self,
        name: str,
        arguments: Mapping[str, Any],
        *,
        parent: str = "",
        labels: Mapping[str, str] | None = None,
    ) -> Run:
        """Run one script's tool with arguments that have been validated; the whole Run.

        `parent` is the run that called it, and `labels` are that run's.
        """
        return self._execute(self._scripts[name], arguments, parent, labels)

    def close(self) -> None:
        if self._own:
            self._sandbox.close()
        self._closing.close()

    def closing(self, part: Any) -> None:
        """Close this part with the library: what its context reaches."""
        self._closing.callback(part.close)

    def __enter__(self) -> ScriptLibrary:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Finding and loading

    def _wanted(self) -> dict[str, ScriptSettings]:
        """Scripts by name: those in folders first, which a section of their own overrides."""
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
        if settings.problem is not None:
            return LoadedScript(settings, source, stamp, problem=settings.problem)
        try:
            source = read_source(settings.path)
            definition, enclosed = self._define(settings, source)
            tool = self._make_tool(settings, definition, source)
        except _BrokenScript as problem:
            return LoadedScript(settings, source, stamp, problem=str(problem), error=problem.error)
        except MoonboxError as problem:
            return LoadedScript(settings, source, stamp, problem=str(problem))
        return LoadedScript(settings, source, stamp, definition, tool, enclosed=enclosed)

    def _define(self, settings: ScriptSettings, source: str) -> tuple[ScriptDefinition, bool]:
        # No check, because the host functions are absent here. No record, because this is not a call.
        with self._sandbox.repl(limits=_LOAD_LIMITS, check=False, before_write=lambda _: None) as repl:
            enclosed = _ENCLOSED.replace("{source}", source)
            run = repl.run(source)
            # It may return what cannot leave a script, such as its own functions.
            if run.error is not None and (run.error.kind != "runtime" or repl.run(enclosed).error is not None):
                raise _BrokenScript(f"{settings.path.name} cannot be loaded: {run.error}", run.error)
            run = repl.run(READ_DEFINITION)
            if run.error is not None:
                raise _BrokenScript(f"{settings.path.name} cannot be loaded: {run.error}", run.error)
            name = settings.name if settings.configured else None
            definition = ScriptDefinition.from_value(run.value, name, settings.name)
            # Compiled, and ended before its first statement.
            follows = repl.run(f"do return end {source}\n{_EXECUTE}").error is None
            return definition, not follows or _SHADOWED.search(source) is not None

    def _make_tool(self, settings: ScriptSettings, definition: ScriptDefinition, source: str) -> Tool:
        def call(arguments: dict[str, Any], context: Context | None = None) -> Any:
            return self._value(settings.name, arguments, context or Context())

        return Tool.from_schema(
            name=definition.name,
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
        tools: dict[str, Tool] = {}
        for key, item in self._scripts.items():
            if item.tool is None:
                continue
            if item.tool.path in tools:
                taken = (
                    f"{item.settings.path.name}: another tool script is called '{item.tool.path}'; rename one of them"
                )
                self._scripts[key] = replace(item, tool=None, problem=taken)
                continue
            tools[item.tool.path] = item.tool
        for path in self.toolbox.paths():
            if path not in tools:
                self.toolbox.remove(path)
        self.toolbox.add(list(tools.values()), replace=True)

    # Executing

    def _value(self, name: str, arguments: Mapping[str, Any], context: Context) -> Any:
        """The tool's result; a failed run becomes a ToolError."""
        run = self.execute(name, arguments, parent=context.run_id, labels=context.labels)
        if run.error is None:
            return run.value
        raise _tool_error(run.error, name, self._scripts[name].settings.path.name)

    def _execute(
        self, script: LoadedScript, arguments: Mapping[str, Any], parent: str, labels: Mapping[str, str] | None
    ) -> Run:
        """In a fresh environment: load the script, then call tool.execute.

        Both in one run: lines of errors are lines of the file, and the trail has one row.
        """
        settings = script.settings
        if script.tool is None or script.problem is not None:
            raise ToolError(f"the tool script {settings.name} cannot be used: {script.problem}", code="unavailable")
        name = script.tool.name
        section = f"tools.script.{settings.name}"

        def described(run: Run) -> Run:
            # The line that calls tool.execute is not in the file.
            error = None if run.error is None else without_line(run.error, script.source.count("\n") + 2)
            return structs.replace(run, parent=parent, tool=name, error=error)

        with script_repl(
            self._sandbox, settings, section=section, make_api=self._make_api, before_write=described
        ) as repl:
            repl.define("params", dict(arguments))
            repl.define("context.config", dict(settings.config))
            repl.define("context.tool", name)
            for key, value in self._context.items():
                repl.define(f"context.{key}", value)
            if not script.enclosed:
                return repl.run(f"{script.source}\n{_EXECUTE}", labels=labels)
            return repl.run(f"{_ENCLOSED.replace('{source}', script.source)} {_EXECUTE}", labels=labels)


def _tool_error(error: ScriptError, tool: str, file: str) -> ToolError:
    """A failed run as the error of its tool: what the script raised as {code, message, retryable, data} arrives so."""
    line = next((frame.line for frame in error.frames if frame.chunk == "script"), None)
    where = f"{file}:{line}" if line is not None else None
    raised = error.data if error.kind == "runtime" and isinstance(error.data, dict) else {}
    if isinstance(raised.get("message"), str):
        message, data, retryable = raised["message"], raised.get("data"), raised.get("retryable") is True
    elif error.kind == "tool":
        message, data, retryable = error.message, error.data, error.retryable
    else:
        at = f"{where}: " if where else f"{file}: "
        message, data, retryable = f"{at}{error.message}", error.data, error.limit == "time"
    return ToolError(
        message,
        code=error.code or (f"limit_{error.limit}" if error.limit else error.kind),
        retryable=retryable,
        data=data if isinstance(data, dict | list | str | int | float) else None,
        tool=tool,
        detail="\n".join(part for part in (where, error.traceback) if part),
        where=where,
    )


class _BrokenScript(ToolDefinitionError):
    """A script that failed while it was loaded."""

    def __init__(self, message: str, error: ScriptError) -> None:
        super().__init__(message)
        self.error = error
