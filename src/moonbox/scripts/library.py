"""The library: loads tool scripts in the sandbox, keeps them up to date, and makes tools of them."""

from __future__ import annotations

import contextlib
import re
import threading
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from msgspec import structs

from moonbox.audit.chain import digest
from moonbox.config import Config
from moonbox.errors import ConfigError, MoonboxError, ToolDefinitionError, ToolError
from moonbox.languages.explanations import without_line
from moonbox.limits import Limits
from moonbox.scripts.configured import ScriptSettings, ToolsSettings
from moonbox.scripts.definition import READ_DEFINITION, ScriptDefinition, file_stamp, read_source, script_repl
from moonbox.suggest import unknown
from moonbox.tools.coercion import compile_coercion
from moonbox.tools.document import Document
from moonbox.tools.function import Context
from moonbox.tools.hints import Hints
from moonbox.tools.tool import Tool
from moonbox.tools.toolbox import Toolbox

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping, Sequence

    from moonbox.audit.records import Run
    from moonbox.audit.sinks import Sink
    from moonbox.errors import ScriptError
    from moonbox.sandbox.sandbox import Sandbox
    from moonbox.scripts.hostapi.api import HostApi

_LOAD_LIMITS = Limits(timeout=5.0, max_operations=5_000_000, max_tool_calls=0)
_EXECUTE = "return tool.execute(params, context)"
_ENCLOSED = "do local load = function(...) {source}\nend load(...) end"
"""The script inside a function, which limits the scope of its locals and its return. No line is added before it."""
_SHADOWED = re.compile(r"^\s*local\s[^=\n]*\b(?:params|context)\b", re.MULTILINE)
"""A local variable that would hide an argument of the call."""


@dataclass(frozen=True, slots=True)
class LoadedScript:
    """A tool script after loading, with its tool or its problem."""

    settings: ScriptSettings
    source: str = ""
    stamp: tuple[int, int] = (0, 0)
    definition: ScriptDefinition | None = None
    tool: Tool | None = None
    problem: str | None = None
    """Why the script cannot be used. It may still have the tool of its last working version."""
    error: ScriptError | None = None
    """The error of the script, if the problem is one."""
    enclosed: bool = False
    """The call cannot be appended to the source, because it ends with a return or hides the call's arguments."""


class ScriptLibrary:
    """Tool scripts as tools. A broken, endless or hostile script affects only its own tool.

    `context` holds what scripts find as `context.<name>` beside `context.config`: functions or values. `audit` and
    `redact` are those of a Sandbox.
    """

    def __init__(
        self,
        settings: ToolsSettings,
        *,
        sandbox: Sandbox | None = None,
        audit: Sink | None = None,
        redact: Sequence[str] | None = None,
        context: Mapping[str, Any] | None = None,
        make_api: Callable[..., HostApi] | None = None,
    ) -> None:
        from moonbox.sandbox.sandbox import Sandbox

        self.settings = settings
        self.toolbox = Toolbox()
        self._own = sandbox is None
        self._closing = contextlib.ExitStack()
        self._sandbox = sandbox or Sandbox(audit=audit, redact=redact)
        self._context = {name: _needs_knowledge(name) for name in ("search", "get", "sources")} | dict(context or {})
        self._make_api = make_api
        self._lock = threading.Lock()
        self._loaded: dict[str, LoadedScript] = {}  # by `_key`
        self._scripts: tuple[LoadedScript, ...] = ()
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
        return self._scripts

    def refresh(self) -> bool:
        """Load new and changed scripts, and remove deleted ones. Returns whether there were any."""
        with self._lock:
            before, loaded = self._loaded, {}
            for key, settings in self._wanted().items():
                known = before.get(key)
                unchanged = known is not None and known.stamp == file_stamp(settings.path)
                loaded[key] = known if known is not None and unchanged else self._load(key, settings, known)
            if loaded.keys() == before.keys() and all(before[key] is script for key, script in loaded.items()):
                return False
            self._loaded = loaded
            self._publish()
            return True

    def execute(
        self,
        name: str,
        arguments: Mapping[str, Any],
        *,
        parent: str = "",
        labels: Mapping[str, str] | None = None,
    ) -> Run:
        """Run the tool of this name with validated arguments; the whole Run.

        `parent` is the run that called it, and `labels` are that run's.
        """
        script = next((script for script in self._scripts if script.settings.name == name), None)
        if script is None:
            raise ToolError(
                unknown("tool script", name, [item.settings.name for item in self._scripts]), code="not_found"
            )
        return self._execute(script, arguments, parent, labels)

    def close(self) -> None:
        if self._own:
            self._sandbox.close()
        self._closing.close()

    def closing(self, part: Any) -> None:
        """Close this part, which the context uses, together with the library."""
        self._closing.callback(part.close)

    def __enter__(self) -> ScriptLibrary:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Finding and loading

    def _wanted(self) -> dict[str, ScriptSettings]:
        """The configured scripts, then those in folders that have no table of their own."""
        wanted = {_key(settings): settings for settings in self.settings.scripts}
        configured = {settings.path for settings in self.settings.scripts}
        for folder in self.settings.folders:
            if not folder.is_dir():
                raise ConfigError(f"[tools] folders: {folder} does not exist or is not a folder")
            for file in sorted(folder.glob("*.lua")):
                if (path := file.resolve()) not in configured:
                    wanted[str(file)] = ScriptSettings(file.stem, path)
        return wanted

    def _load(self, key: str, settings: ScriptSettings, before: LoadedScript | None) -> LoadedScript:
        """Load a script. If it is broken, it keeps the tool that it was `before`, whose calls report the problem."""
        stamp = file_stamp(settings.path)
        error, source = None, ""
        try:
            if settings.problem is not None:
                raise ToolDefinitionError(settings.problem)
            source = read_source(settings.path)
            definition, enclosed = self._define(settings, source)
            named = replace(settings, name=definition.name)
            tool = self._make_tool(key, named, definition, source)
            return LoadedScript(named, source, stamp, definition, tool, enclosed=enclosed)
        except MoonboxError as problem:
            error = problem.error if isinstance(problem, _BrokenScript) else None
            broken = LoadedScript(settings, source, stamp, problem=str(problem), error=error)
        if before is None:
            return broken
        return replace(broken, settings=before.settings, definition=before.definition, tool=before.tool)

    def _define(self, settings: ScriptSettings, source: str) -> tuple[ScriptDefinition, bool]:
        # No check, because the host functions are absent here. No record, because this is not a call.
        with self._sandbox.repl(limits=_LOAD_LIMITS, check=False, before_write=lambda _: None) as repl:
            enclosed = _ENCLOSED.replace("{source}", source)
            run = repl.run(source)
            # The script may return a value that cannot leave it, such as a function.
            if run.error is not None and (run.error.kind != "runtime" or repl.run(enclosed).error is not None):
                raise _BrokenScript(f"{settings.path.name} cannot be loaded: {run.error}", run.error)
            run = repl.run(READ_DEFINITION)
            if run.error is not None:
                raise _BrokenScript(f"{settings.path.name} cannot be loaded: {run.error}", run.error)
            definition = ScriptDefinition.from_value(run.value, settings)
            # Compiles the script with the call, and returns before the first statement.
            follows = repl.run(f"do return end {source}\n{_EXECUTE}").error is None
            return definition, not follows or _SHADOWED.search(source) is not None

    def _make_tool(self, key: str, settings: ScriptSettings, definition: ScriptDefinition, source: str) -> Tool:
        fit = compile_coercion(Document(definition.returns)) if definition.returns else None

        def call(arguments: dict[str, Any], context: Context | None = None) -> Any:
            value = self._value(self._loaded.get(key), arguments, context or Context())
            return fit(value) if fit else value

        return Tool.from_schema(
            name=definition.name,
            description=definition.description,
            parameters=definition.parameters,
            returns=definition.returns,
            hints=Hints.of(definition.hints),
            policy=definition.policy,
            call=call,
            timeout=settings.timeout + 1.0,  # longer than the script's own limit, whose error says more
            meta={"version": definition.version, "script": str(settings.path), "source": digest(source.encode())},
        )

    def _publish(self) -> None:
        """Offer the tools. Of two scripts that define the same tool, the first has it."""
        scripts: list[LoadedScript] = []
        named: dict[str, LoadedScript] = {}
        for script in self._loaded.values():
            first = named.setdefault(script.settings.name, script) if script.tool is not None else script
            if first is not script:
                files, name = f"{script.settings.path} and {first.settings.path}", script.settings.name
                script = replace(
                    script, tool=None, problem=f"{files} both define the tool '{name}'; rename one of them"
                )
            scripts.append(script)
        self._scripts = tuple(scripts)
        for path in self.toolbox.paths():
            if path not in named:
                self.toolbox.remove(path)
        self.toolbox.add([script.tool for script in named.values()], replace=True)

    # Executing

    def _value(self, script: LoadedScript | None, arguments: Mapping[str, Any], context: Context) -> Any:
        """The tool's result; a failed run becomes a ToolError."""
        if script is None:
            raise ToolError("the file of this tool was removed", code="unavailable")
        run = self._execute(script, arguments, context.run_id, context.labels)
        if run.error is None:
            return run.value
        raise _tool_error(run.error, script.settings.name, script.settings.path.name)

    def _execute(
        self, script: LoadedScript, arguments: Mapping[str, Any], parent: str, labels: Mapping[str, str] | None
    ) -> Run:
        """Load the script in a new environment and call tool.execute.

        One run does both, so that errors have the lines of the file and the trail has one row.
        """
        settings = script.settings
        if script.tool is None or script.problem is not None:
            raise ToolError(f"the tool script {settings.name} cannot be used: {script.problem}", code="unavailable")
        section = f"tools.script.{settings.name}"

        def described(run: Run) -> Run:
            # The line that calls tool.execute is not in the file.
            error = None if run.error is None else without_line(run.error, script.source.count("\n") + 2)
            return structs.replace(run, parent=parent, tool=settings.name, error=error)

        with script_repl(
            self._sandbox, settings, section=section, make_api=self._make_api, before_write=described
        ) as repl:
            repl.define("params", dict(arguments))
            repl.define("context.config", dict(settings.config))
            repl.define("context.tool", settings.name)
            for key, value in self._context.items():
                repl.define(f"context.{key}", value)
            if not script.enclosed:
                return repl.run(f"{script.source}\n{_EXECUTE}", labels=labels)
            return repl.run(f"{_ENCLOSED.replace('{source}', script.source)} {_EXECUTE}", labels=labels)


def _needs_knowledge(name: str) -> Callable[..., NoReturn]:
    """`context.<name>` of a library that has no knowledge base."""

    def refuse(*_: Any) -> NoReturn:
        todo = "add [knowledge.sources.NAME] to moonbox.toml and run `moonbox sync`"
        raise ToolError(f"context.{name} needs a knowledge base; {todo}", code="unavailable")

    return refuse


def _key(settings: ScriptSettings) -> str:
    """What stays the same when the script changes: its table, or its path if it has none."""
    return settings.name if settings.configured else str(settings.path)


def _tool_error(error: ScriptError, tool: str, file: str) -> ToolError:
    """A failed run's error as a ToolError, with the fields of a raised table {code, message, retryable, data}."""
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
