"""Saved scripts: a run becomes a tool script, with its tool calls as a test."""

from __future__ import annotations

import json
import os
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moonbox.errors import MoonboxError, ToolError, UsageError
from moonbox.languages.language import RESERVED_WORDS
from moonbox.languages.registry import DEFAULT_LANGUAGE
from moonbox.sandbox.decisions import Middleware, ToolCall
from moonbox.scripts.authoring import Example, example_text, examples_file, run_example
from moonbox.scripts.configured import ScriptSettings
from moonbox.scripts.definition import parameters_schema
from moonbox.tools.function import Context  # noqa: TC001  # read from the signature of a tool
from moonbox.tools.tool import Tool
from moonbox.wording import visible

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from moonbox.audit.records import Call, Run
    from moonbox.scripts.library import LoadedScript, ScriptLibrary

SAVE = "save"
HISTORY = "history"
"""The folder, in that of the saved scripts, for earlier versions and removed scripts."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_LARGEST = 200_000
_TYPES = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}


@dataclass(frozen=True, slots=True)
class SavedScript:
    """What was written, and whether an example was recorded."""

    name: str
    path: Path
    version: int
    tested: bool


def save_run(
    library: ScriptLibrary,
    run: Run,
    *,
    parameters: Sequence[Mapping[str, Any]] = (),
    values: Mapping[str, Any] | None = None,
    example: bool = True,
    **options: Any,
) -> SavedScript:
    """Make a tool script of a run that succeeded; the options are those of `save_source`.

    A parameter is an input of the run, or a variable that a line `local NAME = …` of the script sets. `values` are
    those that the run had. The run's tool calls become an example, which the saved script must repeat.
    """
    if run.language != DEFAULT_LANGUAGE:
        raise UsageError(f"the run is in {run.language}; tool scripts are in Lua, so only runs in Lua can be saved")
    if run.tool or not run.ok:
        raise UsageError("only a run that succeeded, and that is not itself one of a tool script, can be saved")
    values = {**_set_in(run.source), **(values or {})}
    names = [str(item.get("name")) for item in parameters]
    kinds = [{"type": _TYPES.get(type(values[name]), "string")} if name in values else {} for name in names]
    options["parameters"] = [{**kind, **item} for kind, item in zip(kinds, parameters, strict=True)]
    if example and (missing := [name for name in names if name not in values]):
        raise UsageError(
            f"the value of the parameter '{missing[0]}' in the run is unknown: no line `local {missing[0]} = …` sets "
            "it, and none was given"
        )
    if example:
        calls = tuple({"tool": call.tool, "arguments": call.arguments, **_outcome(call)} for call in run.calls)
        params = {name: values[name] for name in names}
        options["example"] = Example("recorded from a run", params, run.value, calls=calls)
    return save_source(library, run.source, called=[call.tool for call in run.calls], **options)


def _outcome(call: Call) -> dict[str, Any]:
    if call.error is None:
        return {"result": call.result}
    return {"error": call.error.message, "code": call.error.code}


def save_source(
    library: ScriptLibrary,
    source: str,
    *,
    name: str,
    description: str = "",
    parameters: Sequence[Mapping[str, Any]] = (),
    called: Sequence[str] = (),
    replace: bool = False,
    example: Example | None = None,
) -> SavedScript:
    """Write a script as a tool script, once it loads and repeats its example.

    It may call the tools that it names, and those in `called`. `replace` allows a new version of a saved script.
    """
    path = _folder(library) / f"{name}.lua"
    before = _check_name(library, name, replace=replace)
    version = len(_history(path)) + (2 if before is not None else 1)
    text = _file_text(library, source, name, description, version, parameters, _uses(library, source, called))
    recorded = "" if example is None else example_text([example])
    try:
        if len((text + recorded).encode()) > _LARGEST:
            raise UsageError(
                f"the script and its example have more than {_LARGEST:,} bytes; save it without an example"
            )
        _try(library, name, text, example)
        path.parent.mkdir(parents=True, exist_ok=True)
        if before is not None:
            _retire(path)
        if example is not None:
            _write(examples_file(path), recorded)
        _write(path, text)
    except UnicodeEncodeError:  # half of a surrogate pair
        raise UsageError("the script or its example has text that UTF-8 cannot hold") from None
    except OSError as problem:
        raise UsageError(f"{path} cannot be written: {problem.strerror or problem}") from None
    library.refresh()
    return SavedScript(name, path, version, example is not None)


def remove_script(library: ScriptLibrary, name: str) -> Path:
    """Take a saved script away; where its last version is kept."""
    script = _saved(library, name)
    if script is None:
        raise UsageError(f"there is no saved script '{visible(name, keep='')}' in {_folder(library)}")
    kept = _retire(script.settings.path)
    library.refresh()
    return kept


_PARAMETERS = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "pattern": f"^{_NAME.pattern}$"},
        "description": {"type": "string", "minLength": 1, "maxLength": 2000},
        "parameters": {
            "type": "array",
            "default": [],
            "items": {"type": "object", "description": '{name = "days", type = "integer", required = true}'},
        },
        "source": {"type": "string", "description": "The script: it finds its parameters as variables."},
        "replace": {"type": "boolean", "default": False, "description": "Replace the saved script of that name."},
    },
    "required": ["name", "description"],
    "additionalProperties": False,
}


def saving(library: ScriptLibrary, trail: Any = None) -> tuple[Tool, Middleware]:
    """The tool `save`, and the layer that puts the script into its call, so that the person who is asked sees it.

    Without `source`, the latest successful script of the conversation in the `trail` is saved.
    """

    def latest(repl: str) -> Run | None:
        known = trail.list(20, repl=repl, ok=True) if trail is not None and repl else ()
        runs = (trail.get(item.id) for item in known)
        return next((run for run in runs if not run.tool and all(call.tool != SAVE for call in run.calls)), None)

    def before(call: ToolCall) -> ToolCall | None:
        if call.definition is not tool or call.arguments.get("source"):
            return None
        if (run := latest(call.repl_id)) is None:
            raise ToolError("no earlier script of this conversation is known; give source", code="not_found")
        return call.with_arguments({**call.arguments, "source": run.source})

    def call(arguments: dict[str, Any], context: Context) -> dict[str, Any]:
        source, run = arguments["source"], latest(context.repl_id)
        options = {key: value for key, value in arguments.items() if key != "source"}
        try:
            if run is not None and run.source == source:
                saved = save_run(library, run, **options)
            else:
                saved = save_source(library, source, **options)
        except MoonboxError as problem:
            raise ToolError(str(problem), code="invalid") from None
        return {"tool": f"tools.{saved.name}", "version": saved.version, "tested": saved.tested}

    about = (
        "Saves a script as a new tool, after a person's approval. Without source: the latest script of this "
        "conversation that succeeded. A parameter takes the place of the value in a line `local NAME = …`."
    )
    tool = Tool.from_schema(name=SAVE, description=about, parameters=_PARAMETERS, call=call, policy="approve")
    return tool, Middleware(before=before)


# What is written


def _file_text(
    library: ScriptLibrary,
    source: str,
    name: str,
    description: str,
    version: int,
    parameters: Sequence[Mapping[str, Any]],
    uses: Sequence[str],
) -> str:
    if not library.compiles(source):  # by itself, so that it cannot end the function around it
        raise UsageError("the script has a syntax error")
    body, more = source.strip("\n"), ""
    if library.compiles(f"return {source}"):
        body = f"return {body}"
    for item in parameters_schema(list(parameters))["properties"]:
        if not _NAME.fullmatch(item) or item in (*RESERVED_WORDS, "params", "context", "tools"):
            raise UsageError(f"a parameter cannot be called {item!r}")
        if found := re.search(rf"^(local {item}\s*=\s*)\S.*$", body, re.MULTILINE):
            body = f"{body[: found.start()]}{found[1]}params.{item}{body[found.end() :]}"
        else:
            more += f"local {item} = params.{item}\n"
    reads = all(tool is not None and tool.hints.read_only for tool in map(library.tools.get, uses))
    fields: dict[str, Any] = {
        "name": name,
        "description": description,
        "version": str(version),
        "parameters": [dict(item) for item in parameters],
        "hints": {"read_only": True} if reads else {},
        "uses": list(uses),
    }
    head = "".join(f"  {key} = {lua_literal(value)},\n" for key, value in fields.items() if value)
    # Not indented: the lines of a long string must stay as they are.
    return f"tool = {{\n{head}}}\n\nfunction tool.execute(params, context)\n{more}{body}\nend\n"


def lua_literal(value: Any) -> str:
    """A JSON value in Lua's notation, on one line."""
    if isinstance(value, str):
        return '"' + re.sub(r'[\x00-\x1f\x7f"\\]', lambda found: f"\\{ord(found[0]):03d}", value) + '"'
    if isinstance(value, dict):
        keys = (key if _NAME.fullmatch(key) and key not in RESERVED_WORDS else f"[{lua_literal(key)}]" for key in value)
        parts = [f"{key} = {lua_literal(item)}" for key, item in zip(keys, value.values(), strict=True)]
        return f"{{ {', '.join(parts)} }}"
    if isinstance(value, list | tuple):
        return f"{{ {', '.join(map(lua_literal, value))} }}"
    return "json.null" if value is None else json.dumps(value)


def _uses(library: ScriptLibrary, source: str, called: Sequence[str]) -> list[str]:
    """The tools that the run called, and those that the script names."""
    named = set(called) & set(library.tools.paths())
    for path, alias in library.tools.aliases().items():
        written = rf"\btools\s*(\.\s*{re.escape(alias)}\b|\[\s*[\"']{re.escape(path)}[\"']\s*\])"
        if re.search(written, source) or (path == "llm" and re.search(r"\bllm\b", source)):
            named.add(path)
    return sorted(named - {SAVE})


def _set_in(source: str) -> dict[str, Any]:
    """The numbers, texts and truth values that lines `local NAME = …` set."""
    values: dict[str, Any] = {}
    for name, text in re.findall(r"^local (\w+)\s*=\s*(\S.*?)[ \t;]*(?:--.*)?$", source, re.MULTILINE):
        try:
            value = json.loads(f'"{text[1:-1]}"' if text[:1] == text[-1:] == "'" else text)
        except ValueError:
            continue
        if isinstance(value, bool | int | float | str):
            values.setdefault(name, value)
    return values


# Where it is written


def _folder(library: ScriptLibrary) -> Path:
    if library.settings.saved is None:
        raise UsageError('scripts cannot be saved here; add saved = "saved" under [tools] in moonbox.toml')
    return library.settings.saved


def _saved(library: ScriptLibrary, name: str) -> LoadedScript | None:
    path = _folder(library) / f"{name}.lua"
    return next((script for script in library.scripts if script.settings.path == path), None)


def _check_name(library: ScriptLibrary, name: str, *, replace: bool) -> LoadedScript | None:
    """The saved script that gives way; UsageError where the name cannot be used."""
    if not _NAME.fullmatch(name) or name in RESERVED_WORDS:
        raise UsageError(f"invalid name '{visible(name[:80], keep='')}'; use up to 64 letters, digits and _")
    library.refresh()
    before = _saved(library, name)
    if before is None:
        taken = [each for tool in library.tools for each in (tool.path, tool.namespace)]
        taken += [SAVE, *(script.settings.name for script in library.scripts)]
        taken += [path.stem for path in _folder(library).glob("*.lua")]
        if name.lower() in {each.lower() for each in taken if each is not None}:
            raise UsageError(f"there is a tool '{name}' already, which is not a saved script; choose another name")
    elif not replace:
        raise UsageError(f"there is a saved script '{name}' already; remove it first, or replace it")
    return before


def _history(path: Path) -> list[Path]:
    return list((path.parent / HISTORY).glob(f"{path.stem}.*.lua"))


def _retire(path: Path) -> Path:
    """Move a script to the history, without its examples; where it is then."""
    place = path.parent / HISTORY / f"{path.stem}.{len(_history(path)) + 1}.lua"
    place.parent.mkdir(exist_ok=True)
    examples_file(path).unlink(missing_ok=True)
    return path.replace(place)


def _write(path: Path, text: str) -> None:
    """In one step: nobody reads half of it, and a link is replaced, not followed."""
    fd, draft = tempfile.mkstemp(dir=path.parent, prefix=".save-")
    with os.fdopen(fd, "w", encoding="utf-8") as file:
        file.write(text)
    Path(draft).chmod(0o644)
    Path(draft).replace(path)


def _try(library: ScriptLibrary, name: str, text: str, example: Example | None) -> None:
    """Load the script, and compare it with its example; UsageError where it fails."""
    with tempfile.TemporaryDirectory(prefix="moonbox-save-") as folder:
        path = Path(folder) / f"{name}.lua"
        path.write_text(text, encoding="utf-8")
        script = library.load(ScriptSettings(name, path, tools=("*",)))
        if script.tool is None:
            raise UsageError(f"the script cannot be a tool: {script.problem}")
        problem = None if example is None else run_example(library, script, example)
    if problem is not None:
        raise UsageError(
            f"the saved script does not repeat the run: {problem}. It may need globals of earlier runs, inputs that "
            "are not parameters, or the time of the run"
        )
