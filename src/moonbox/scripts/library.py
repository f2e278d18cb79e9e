"""The library: loads tool scripts in the sandbox, keeps them up to date, and makes tools of them."""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

from msgspec import structs

from moonbox.audit.chain import digest
from moonbox.closing import Closing, during
from moonbox.errors import ConfigError, MoonboxError, ScriptError, ToolDefinitionError, ToolError
from moonbox.languages.explanations import without_line
from moonbox.limits import Limits
from moonbox.schema.bounds import TooCostly, refusal
from moonbox.schema.coercion import compile_coercion
from moonbox.schema.tree import SchemaNode
from moonbox.scripts.configured import ScriptSettings, ToolsSettings
from moonbox.scripts.definition import READ_DEFINITION, ScriptDefinition, file_stamp, read_source, script_repl
from moonbox.tools.function import Context
from moonbox.tools.hints import Hints
from moonbox.tools.tool import ALSO_DIRECT, Tool
from moonbox.tools.toolbox import Toolbox

if TYPE_CHECKING:
    from moonbox.audit.records import Run
    from moonbox.sandbox.sandbox import Sandbox

_LOAD_LIMITS = Limits(timeout=5.0, max_operations=5_000_000, max_tool_calls=0)
_EXECUTE = "return tool.execute(params, context)"
_ENCLOSED = "do local load = function(...) {source}\nend load(...) end"
"""The script inside a function, which limits the scope of its locals and its return. No line is added before it."""
_SHADOWED = re.compile(r"^\s*local\s[^=\n]*\b(?:params|context)\b", re.MULTILINE)
"""A local variable that would hide an argument of the call."""
_HOST_FUNCTION = re.compile(r"\(global '(http|fs|env|secret|log|time|sleep|url|csv|base64|crypto|regex)'\)")

_DEPTH: ContextVar[int] = ContextVar("moonbox_tool_script_depth", default=0)
"""How many tool scripts wait for each other."""
_MOST_DEEP = 4


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


class ScriptLibrary(Closing):
    """Tool scripts as tools. A broken, endless or hostile script affects only its own tool.

    `context` holds what scripts find as `context.<name>` beside `context.config`: functions or values. `tools` are
    those that scripts may call: each the ones in its `tool.uses` that it is granted.
    """

    def __init__(
        self,
        settings: ToolsSettings,
        sandbox: Sandbox,
        *,
        context: Mapping[str, Any] | None = None,
        tools: Toolbox | None = None,
    ) -> None:
        self.settings = settings
        self.toolbox = Toolbox()
        self._sandbox = sandbox
        self._closing = contextlib.ExitStack()
        self.tools = Toolbox() if tools is None else tools
        self._context = {name: partial(_needs_knowledge, name) for name in ("search", "get", "sources")}
        self._context |= context or {}
        self._lock = threading.Lock()
        self._loaded: dict[str, LoadedScript] = {}  # by `_key`
        self.scripts: tuple[LoadedScript, ...] = ()
        """Every script, with its tool or its problem."""
        self.refresh()

    def refresh(self) -> bool:
        """Load new and changed scripts, and remove deleted ones. Returns whether there were any."""
        with self._lock:
            before, loaded = self._loaded, {}
            for key, settings in self._wanted().items():
                known = before.get(key)
                unchanged = known is not None and known.stamp == file_stamp(settings.path)
                loaded[key] = known if known is not None and unchanged else self.load(settings, key, known)
            if loaded.keys() == before.keys() and all(before[key] is script for key, script in loaded.items()):
                return False
            self._loaded = loaded
            self._publish()
            return True

    def compiles(self, source: str) -> bool:
        """Whether a script has correct syntax. It is not run."""
        with self._sandbox.repl(limits=_LOAD_LIMITS) as repl:
            return all(finding.code != "syntax" for finding in repl.check(source))

    def close(self) -> None:
        self._closing.close()

    def closing(self, part: Any) -> None:
        """Close this part, which the library uses, together with it."""
        self._closing.callback(part.close)

    def _wanted(self) -> dict[str, ScriptSettings]:
        """The configured scripts, then those in folders that have no table of their own."""
        wanted = {_key(settings): settings for settings in self.settings.scripts}
        configured = {settings.path for settings in self.settings.scripts}
        for folder in self.settings.folders:
            if not folder.is_dir():
                raise ConfigError(f"[tools] folders: {folder} does not exist or is not a folder")
        saved = self.settings.saved
        for folder in (*self.settings.folders, *([] if saved is None else [saved])):
            for file in sorted(folder.glob("*.lua")):
                if (path := file.resolve()) not in configured:
                    wanted[str(file)] = ScriptSettings(file.stem, path, tools=("*",) if folder == saved else ())
        return wanted

    def load(
        self, settings: ScriptSettings, key: str = "", before: LoadedScript | None = None, *, source: str = ""
    ) -> LoadedScript:
        """Load a script, by default from its file.

        If it is broken, it keeps the tool that it was `before`, whose calls report the problem.
        """
        stamp, error = file_stamp(settings.path), None
        try:
            if settings.problem is not None:
                raise ToolDefinitionError(settings.problem)
            source = source or read_source(settings.path)
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
            if run.error is None or (run.error.kind == "runtime" and repl.run(enclosed).error is None):
                run = repl.run(READ_DEFINITION)
            if run.error is not None:
                error = run.error
                if used := _HOST_FUNCTION.search(error.message):
                    error = error.with_(hint=f"{used[1]} can be used only while tool.execute runs: call it in there")
                raise _BrokenScript(f"{settings.path.name} cannot be loaded: {error}", error)
            definition = ScriptDefinition.from_value(run.value, settings)
            # Compiles the script with the call, and returns before the first statement.
            follows = repl.run(f"do return end {source}\n{_EXECUTE}").error is None
            return definition, not follows or _SHADOWED.search(source) is not None

    def _make_tool(self, key: str, settings: ScriptSettings, definition: ScriptDefinition, source: str) -> Tool:
        returns = SchemaNode(definition.returns)
        fit = None if refusal(returns) else compile_coercion(returns)

        def call(arguments: dict[str, Any], context: Context | None = None) -> Any:
            value = self._value(self._loaded.get(key), arguments, context or Context())
            try:
                return fit(value) if fit else value
            except TooCostly:  # a large value stays as it came
                return value

        return Tool.from_schema(
            name=definition.name,
            description=definition.description,
            parameters=definition.parameters,
            returns=definition.returns,
            hints=Hints.of(definition.hints),
            policy=definition.policy,
            call=call,
            # Longer than the script's own limit, whose error says more. None while it may wait for a person.
            timeout=None if definition.uses else settings.timeout + 1.0,
            meta={
                "version": definition.version,
                "script": str(settings.path),
                "source": digest(source.encode()),
                ALSO_DIRECT: settings.direct,
            },
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
        self.scripts = tuple(scripts)
        for path in self.toolbox.paths():
            if path not in named:
                self.toolbox.remove(path)
        self.toolbox.add([script.tool for script in named.values()], replace=True)

    def _value(self, script: LoadedScript | None, arguments: Mapping[str, Any], context: Context) -> Any:
        """The tool's result; a failed run becomes a ToolError."""
        if script is None:
            raise ToolError("the file of this tool was removed", code="unavailable")
        run = self.execute(script, arguments, context)
        if run.error is None:
            return run.value
        raise _tool_error(run.error, script.settings.name, script.settings.path.name)

    def execute(
        self,
        script: LoadedScript,
        arguments: Mapping[str, Any],
        context: Context | None = None,
        tools: Toolbox | None = None,
    ) -> Run:
        """Load the script in a new environment and call tool.execute; `tools` stand in for those that it may call.

        One run does both, so that errors have the lines of the file and the trail has one row.
        """
        context = context or Context()
        settings = script.settings
        if script.tool is None or script.problem is not None:
            raise ToolError(f"the tool script {settings.name} cannot be used: {script.problem}", code="unavailable")
        if (depth := _DEPTH.get()) >= _MOST_DEEP:
            message = f"the tool script {settings.name} was not run: {_MOST_DEEP} tool scripts wait for it"
            raise ToolError(message, code="limit_depth")

        def described(run: Run) -> Run:
            # The line that calls tool.execute is not in the file.
            error = None if run.error is None else without_line(run.error, script.source.count("\n") + 2)
            return structs.replace(run, parent=context.run_id, tool=settings.name, error=error)

        with (
            during(_DEPTH, depth + 1),
            script_repl(self._sandbox, settings, described, self._granted(script) if tools is None else tools) as repl,
        ):
            repl.define("params", dict(arguments))
            repl.define("context.config", dict(settings.config))
            repl.define("context.tool", settings.name)
            for key, value in self._context.items():
                repl.define(f"context.{key}", value)
            form = f"{_ENCLOSED} {_EXECUTE}" if script.enclosed else f"{{source}}\n{_EXECUTE}"
            return repl.run(form.replace("{source}", script.source), labels=context.labels, context=context.extra)

    def _granted(self, script: LoadedScript) -> Toolbox:
        """The tools that a script uses and is granted, as they are now."""
        uses = script.definition.uses if script.definition is not None else ()

        def granted(tool: Tool) -> bool:
            patterns = script.settings.tools if tool.path in uses and not tool.execution else ()
            return any(fnmatchcase(tool.path, pattern) for pattern in patterns)

        return Toolbox(filter(granted, self.tools if uses else ()))


def _needs_knowledge(name: str, *_: Any) -> NoReturn:
    """`context.<name>` of a library that has no knowledge base."""
    todo = "add [knowledge.sources.NAME] to moonbox.toml and run `moonbox sync`"
    raise ToolError(f"context.{name} needs a knowledge base; {todo}", code="unavailable")


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
