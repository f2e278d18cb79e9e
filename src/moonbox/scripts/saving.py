"""Saved scripts: a run becomes a tool script of the project, with its tool calls as a test."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from moonbox.errors import ToolDefinitionError, ToolError, UsageError
from moonbox.languages.language import is_identifier
from moonbox.languages.registry import DEFAULT_LANGUAGE
from moonbox.runs.decisions import Middleware, ToolCall
from moonbox.runs.environment import GLOBAL_TOOLS
from moonbox.scripts.authoring import Example, examples_file, run_example, write_new
from moonbox.scripts.configured import ScriptSettings
from moonbox.scripts.definition import parameters_schema
from moonbox.tools.function import Context  # noqa: TC001  # read from the signature of a tool
from moonbox.tools.tool import Tool
from moonbox.wording import visible

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from moonbox.audit.records import Run
    from moonbox.scripts.library import ScriptLibrary

SAVE = "save"
SAVED_HINT = 'add saved = "saved" under [tools] in moonbox.toml'
HISTORY = "history"
"""The folder, in that of the saved scripts, for earlier versions and removed scripts."""
_LONGEST_NAME = 64
_LARGEST_EXAMPLE = 200_000
_PLAIN = r""""(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|[^\s"';]+?"""
"""A text in quotes, which may contain `--`, or a word."""
_TYPES = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}


class SavedScript(NamedTuple):
    """What was written, and whether an example was recorded."""

    name: str
    path: Path
    version: int
    tested: bool


def save_run(
    library: ScriptLibrary | None,
    run: Run,
    *,
    name: str,
    description: str = "",
    parameters: Sequence[Mapping[str, Any]] = (),
    values: Mapping[str, Any] | None = None,
    source: str = "",
    replace: bool = False,
    example: bool = True,
) -> SavedScript:
    """Make a tool script of a run that succeeded.

    A parameter is an input of the run, or a variable that a line `local NAME = …` of the script sets. `values` are
    those that the run had. The script, or another `source`, must repeat the run with its recorded tool calls, which
    become an example unless they are too large. `replace` allows a new version of a saved script.
    """
    if run.language != DEFAULT_LANGUAGE:
        raise UsageError(f"the run is in {run.language}; tool scripts are in Lua, so only runs in Lua can be saved")
    if run.tool or not run.ok:
        raise UsageError("only a run that succeeded, and that is not itself one of a tool script, can be saved")
    source = source or run.source
    library, folder = _saved_scripts(library)
    path = _path(library, folder, name, replace=replace)
    version = len(_history(path)) + path.exists() + 1
    known = {**_assigned(source), **(values or {})}
    typed = [{"type": _TYPES.get(type(known.get(str(item.get("name")))), "string"), **item} for item in parameters]
    uses = _uses(library, source, run)
    reads = all(tool is not None and tool.hints.read_only for tool in map(library.tools.get, uses))
    fields = {
        "name": name,
        "description": description,
        "version": str(version),
        "parameters": typed,
        "hints": {"read_only": True} if reads else {},
        "uses": uses,
    }
    text = _file_text(library, source, fields)
    recorded = _tried(library, path, text, _example(run, typed, known) if example else None)
    if path.exists():
        _retire(path)
    if recorded:
        write_new(examples_file(path), recorded)
    write_new(path, text)
    library.refresh()
    return SavedScript(name, path, version, bool(recorded))


def can_save(library: ScriptLibrary | None, run: Run) -> bool:
    """Whether there is a place for saved scripts, and the run is one that can become a tool."""
    place = None if library is None else library.settings.saved
    return place is not None and run.language == DEFAULT_LANGUAGE and run.ok and not run.tool


def remove_script(library: ScriptLibrary | None, name: str) -> Path:
    """Take a saved script away; where its last version is kept."""
    library, folder = _saved_scripts(library)
    path = folder / f"{name}.lua"
    if path not in [script.settings.path for script in library.scripts]:
        raise UsageError(f"there is no saved script '{visible(name, keep='')}' in {folder}")
    kept = _retire(path)
    library.refresh()
    return kept


def saving(library: ScriptLibrary, trail: Any) -> tuple[Tool, Middleware]:
    """The tool `save`, and the layer that puts the script into its call, so that the person who is asked sees it."""

    def latest(repl: str) -> Run:
        """The latest script of the conversation that succeeded."""
        known = trail.list(20, repl=repl, ok=True) if trail is not None and repl else ()
        for run in (trail.get(item.id) for item in known):
            if not run.tool and all(call.tool != SAVE for call in run.calls):
                return run  # type: ignore[no-any-return]  # a trail is any sink that can be read
        raise ToolError("the audit trail has no script of this conversation that succeeded", code="not_found")

    def before(call: ToolCall) -> ToolCall | None:
        if call.tool != SAVE or call.arguments.get("source"):
            return None
        return call.with_arguments({**call.arguments, "source": latest(call.repl_id).source})

    def save(
        name: str,
        description: str,
        parameters: tuple[dict[str, Any], ...] = (),
        source: str = "",
        replace: bool = False,
        *,
        context: Context,
    ) -> dict[str, Any]:
        """Saves the latest script of this conversation that succeeded as a new tool, after a person's approval.

        Args:
            parameters: such as {{name = "days", type = "integer"}}. A parameter replaces the value of `local days = …`.
            source: another script that does the same.
            replace: whether to replace a saved script of that name.
        """
        if not source:  # what the person who was asked has not seen is not saved
            raise ToolError("the call has no source", code="invalid")
        options: Any = {"parameters": parameters, "source": source, "replace": replace}
        try:
            saved = save_run(library, latest(context.repl_id), name=name, description=description, **options)
        except (UsageError, ToolDefinitionError) as problem:
            raise ToolError(str(problem), code="invalid") from None
        return {"tool": f"tools.{saved.name}", "version": saved.version, "tested": saved.tested}

    return Tool.from_function(save, policy="approve"), Middleware(before=before)


def _file_text(library: ScriptLibrary, source: str, fields: Mapping[str, Any]) -> str:
    if not library.compiles(source):  # by itself, so that it cannot end the function around it
        raise UsageError("the script has a syntax error")
    body, more = source.strip("\n"), ""
    if library.compiles(f"return {source}"):
        body = f"return {body}"
    for item in parameters_schema(fields["parameters"])["properties"]:
        if not is_identifier(item) or item in ("params", "context", "tools"):
            raise UsageError(f"a parameter cannot be called {item!r}")
        if found := re.search(rf"^(local {item}\s*=\s*)\S.*$", body, re.MULTILINE):
            body = f"{body[: found.start()]}{found[1]}params.{item}{body[found.end() :]}"
        else:
            more += f"local {item} = params.{item}\n"
    head = "".join(f"  {key} = {script_literal(value)},\n" for key, value in fields.items() if value)
    # Not indented: the lines of a long string must stay as they are.
    return f"tool = {{\n{head}}}\n\nfunction tool.execute(params, context)\n{more}{body}\nend\n"


def script_literal(value: Any) -> str:
    """A JSON value in Lua's notation, on one line."""
    if isinstance(value, str):
        return '"' + re.sub(r'[\x00-\x1f\x7f"\\]', lambda found: f"\\{ord(found[0]):03d}", value) + '"'
    if isinstance(value, dict):
        keys = (key if is_identifier(key) else f"[{script_literal(key)}]" for key in value)
        parts = [f"{key} = {script_literal(item)}" for key, item in zip(keys, value.values(), strict=True)]
        return f"{{ {', '.join(parts)} }}"
    if isinstance(value, list | tuple):
        return f"{{ {', '.join(map(script_literal, value))} }}"
    return "json.null" if value is None else json.dumps(value)


def _assigned(source: str) -> dict[str, Any]:
    """The numbers, texts and truth values that lines `local NAME = …` set."""
    values: dict[str, Any] = {}
    for name, text in re.findall(rf"^local (\w+)\s*=\s*({_PLAIN})[ \t;]*(?:--.*)?$", source, re.MULTILINE):
        try:
            value = json.loads(f'"{text[1:-1]}"' if text[:1] == text[-1:] == "'" else text)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, bool | int | float | str):
            values.setdefault(name, value)
    return values


def _uses(library: ScriptLibrary, source: str, run: Run) -> list[str]:
    """The tools that the run called, and those that the script names."""
    named = {call.tool for call in run.calls} & set(library.tools.paths())
    for path, alias in library.tools.aliases().items():
        written = rf"\btools\s*(\.\s*{re.escape(alias)}\b|\[\s*[\"']{re.escape(path)}[\"']\s*\])"
        if re.search(rf"\b{path}\b" if path in GLOBAL_TOOLS else written, source):
            named.add(path)
    return sorted(named - {SAVE})


def _example(run: Run, parameters: Sequence[Mapping[str, Any]], known: Mapping[str, Any]) -> Example:
    names = [item["name"] for item in parameters]
    if missing := [name for name in names if name not in known]:
        raise UsageError(
            f"the value of the parameter '{missing[0]}' in the run is unknown: no line `local {missing[0]} = …` sets "
            f"it to a plain text, number or truth value; give it as {missing[0]}=VALUE"
        )
    calls = []
    for call in run.calls:
        error = call.error
        answer = {"result": call.result} if error is None else {"error": error.message, "code": error.code}
        calls.append({"tool": call.tool, "arguments": call.arguments, **answer})
    return Example("recorded from a run", {name: known[name] for name in names}, run.value, calls=tuple(calls))


def _tried(library: ScriptLibrary, path: Path, text: str, example: Example | None) -> str:
    """Load the script and compare it with the example; the text of the example's file, if it should have one."""
    script = library.load(ScriptSettings(path.stem, path, tools=("*",)), source=text)
    if script.tool is None:
        raise UsageError(f"the script cannot be a tool: {script.problem}")
    if example is None:
        return ""
    if (problem := run_example(library, script, example)) is not None:
        raise UsageError(
            f"the saved script does not repeat the run: {problem}. It may need globals of earlier runs, inputs that "
            "are not parameters, or the time of the run"
        )
    recorded = example.to_text()
    return recorded if len(recorded) <= _LARGEST_EXAMPLE else ""


def _saved_scripts(library: ScriptLibrary | None) -> tuple[ScriptLibrary, Path]:
    if library is None or library.settings.saved is None:
        raise UsageError(f"scripts cannot be saved here; {SAVED_HINT}")
    return library, library.settings.saved


def _path(library: ScriptLibrary, folder: Path, name: str, *, replace: bool) -> Path:
    """The file of a new saved script, or of one that gives way; UsageError where the name cannot be used."""
    if not is_identifier(name) or len(name) > _LONGEST_NAME:
        raise UsageError(f"invalid name '{visible(name[:80], keep='')}'; use up to 64 letters, digits and _")
    library.refresh()
    path = folder / f"{name}.lua"
    if path in [script.settings.path for script in library.scripts]:
        if not replace:
            hint = "--replace (in code: replace=True) makes a new version"
            raise UsageError(f"there is a saved script '{name}' already; {hint}")
        return path
    taken = {SAVE, *(file.stem.lower() for file in folder.glob("*.lua"))}
    taken |= {each.lower() for tool in library.tools for each in (tool.path, tool.namespace or tool.path)}
    if name.lower() in taken:
        raise UsageError(f"there is a tool '{name}' already, which is not a saved script; choose another name")
    return path


def _history(path: Path) -> list[Path]:
    return list((path.parent / HISTORY).glob(f"{path.stem}.*.lua"))


def _retire(path: Path) -> Path:
    """Move a script to the history, without its examples; where it is then."""
    place = path.parent / HISTORY / f"{path.stem}.{len(_history(path)) + 1}.lua"
    try:
        place.parent.mkdir(exist_ok=True)
        examples_file(path).unlink(missing_ok=True)
        return path.replace(place)
    except OSError as problem:
        raise UsageError(f"{path} cannot be moved to {place}: {problem.strerror}") from None
