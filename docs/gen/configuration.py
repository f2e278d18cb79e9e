"""The configuration reference, from the settings that the code reads. A setting without a description is an error."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import json
import textwrap
from typing import Any

from gen.table import GENERATED, table
from moonbox.codemode.settings import Settings
from moonbox.config.file import SECTIONS
from moonbox.knowledge.config import KnowledgeConfig, builtin_connectors
from moonbox.knowledge.contract import schema
from moonbox.languages.registry import DEFAULT_LANGUAGE
from moonbox.limits import Limits
from moonbox.mcp.server.settings import OAuthSettings, ServeSettings
from moonbox.mcp.upstreams.settings import ServerSettings, ToolRule
from moonbox.project.settings import AuditSettings, SandboxSettings
from moonbox.scripts.connector import ScriptConnectorKind
from moonbox.scripts.hostapi.grants import GRANT_KEYS
from moonbox.scripts.settings import _KEYS as TOOLS_KEYS
from moonbox.scripts.settings import DEFAULT_TIMEOUT

HEADS = ("key", "type", "default", "meaning")
PRESETS = ("quick", "standard", "extended", "untrusted")

OWN_WORDS = {
    "tools.folders": "Every `.lua` file in these folders is a tool script.",
    "tools.script": "One table for each tool script with settings of its own: `[tools.script.<name>]`.",
    "script.path": "The file; a relative path is relative to the configuration file.",
    "script.timeout": "Seconds for one call, host functions included.",
    "script.http": "Hosts that it may reach: `api.example.com`, `*.example.com`.",
    "script.env": "Environment variables that it may read, and use as secrets.",
    "script.read": "Folders that it may read.",
    "script.write": "Folders that it may write; this does not include reading.",
    "script.secrets": "Environment variables that it may use but not read: a list, or a table "
    '`NAME = { hosts = […], places = ["header"] }`; the places are header, body and query.',
    "sandbox.language": "The language of scripts: `lua` or `rhai`.",
    "sandbox.isolation": "`process`: each Repl in a locked-in process. `inline`: in this one, for trusted scripts.",
    "sandbox.max_workers": "The most workers at the same time.",
    "sandbox.allow_nan": "Let NaN and infinity leave a script.",
    "audit.enabled": "Whether runs are kept.",
    "audit.fsync": "Wait for the disk after each run, so that a run survives a loss of power.",
    "limits.preset": "Where the other limits start from: `default`, `quick`, `standard`, `extended` or `untrusted`.",
    "limits.max_tool_calls": "Tool calls of one run.",
    "serve.host": "The address to serve on.",
    "serve.port": "The port; 0 takes a free one.",
    "serve.oauth": "Take tokens of an authorization server: the table `[serve.oauth]`.",
    "mcp.args": "The program's arguments.",
    "mcp.headers": "HTTP headers to send with each request.",
    "mcp.enabled": "Whether the server is used at all.",
    "knowledge.embeddings": "What turns texts into vectors: the table `[knowledge.embeddings]`. "
    "Without it, search is by keywords.",
    "knowledge.sources": "One table for each source: `[knowledge.sources.<name>]`.",
    "knowledge.lua.path": "The connector script.",
    "knowledge.lua.timeout": "Seconds for one call of its `scan`.",
}

INTRO = f"""{GENERATED}

# Configuration

`moonbox.toml` says what moonbox serves and what scripts may do. It is looked for in the working folder and then in
those above it; `moonbox init` writes one with comments. Every section may be left out, and an unknown section or key is
an error that names what is known.

`${{NAME}}` in a text is replaced by the environment variable `NAME`, `${{NAME:-default}}` has a default, and `$${{…}}`
stays `${{…}}`. Relative paths are relative to the file.

The same settings can be given in Python: see [code mode](../code-mode.md), [limits](../limits.md),
[tool scripts](../tool-scripts.md) and [the knowledge base](../knowledge.md).
"""

EXAMPLE = """```toml
[tools]
folders = ["tools"]

[limits]
preset = "standard"
timeout = 20

[codemode]
mode = "auto"

[knowledge.sources.handbook]
connector = "filesystem"
path = "docs"

[mcp.servers.time]
command = "uvx"
args = ["mcp-server-time"]

[audit]
path = ".moonbox/audit.db"
```"""


def page() -> str:
    sections = {
        "sandbox": lambda: _settings("sandbox", schema(SandboxSettings), SandboxSettings),
        "limits": _limits,
        "audit": lambda: _settings("audit", schema(AuditSettings), AuditSettings),
        "tools": _tools,
        "codemode": lambda: _settings("codemode", Settings.schema(), Settings),
        "knowledge": _knowledge,
        "mcp": _mcp,
        "serve": _serve,
    }
    missing = set(SECTIONS) ^ set(sections)
    assert not missing, f"sections without a reference, or references without a section: {missing}"
    parts = [INTRO, EXAMPLE, *(f"## [{name}]\n\n{make()}" for name, make in sections.items())]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _limits() -> str:
    rows = [("`preset`", "text", '`"default"`', OWN_WORDS["limits.preset"])]
    words = _docstrings(Limits)
    for field in dataclasses.fields(Limits):
        text = words.get(field.name) or OWN_WORDS[f"limits.{field.name}"]
        kind = "number" if field.name == "timeout" else "integer"
        rows.append((f"`{field.name}`", kind, _shown(field.default), text))
    sets = [
        (f"`{field.name}`", *(_shown(getattr(Limits.preset(name), field.name)) for name in PRESETS))
        for field in dataclasses.fields(Limits)
    ]
    return f"{table(HEADS, rows)}\n\nThe presets:\n\n{table(('', *(f'`{name}`' for name in PRESETS)), sets)}"


def _tools() -> str:
    kinds = {"folders": "list of texts", "script": "table"}
    rows = [
        (f"`{key}`", kinds[key], "`[]`" if key == "folders" else "–", OWN_WORDS[f"tools.{key}"]) for key in TOOLS_KEYS
    ]
    script = [
        ("`path`", "text", "required", OWN_WORDS["script.path"]),
        ("`timeout`", "number", _shown(DEFAULT_TIMEOUT), OWN_WORDS["script.timeout"]),
        *((f"`{key}`", "list of texts", "`[]`", OWN_WORDS[f"script.{key}"]) for key in GRANT_KEYS),
        ("any other key", "any", "–", "The script finds it as `context.config.<key>`."),
    ]
    return f"{table(HEADS, rows)}\n\n### [tools.script.&lt;name&gt;]\n\n{table(HEADS, script)}"


def _knowledge() -> str:
    kinds = {**builtin_connectors(), DEFAULT_LANGUAGE: ScriptConnectorKind()}
    whole = KnowledgeConfig.schema(kinds)
    parts = [_settings("knowledge", whole)]
    parts.append("### [knowledge.embeddings]")
    for each in whole["properties"]["embeddings"]["oneOf"]:
        provider = each["properties"]["provider"]["const"]
        if len(each["properties"]) > 1:
            parts.append(f'With `provider = "{provider}"`: {each.get("description", "")}')
            parts.append(_settings("knowledge.embeddings", each))
        else:
            parts.append(f'With `provider = "{provider}"` there are no further keys: the model runs in this process.')
    for each in whole["properties"]["sources"]["additionalProperties"]["oneOf"]:
        name = each["properties"]["connector"]["const"]
        more = "" if name != "lua" else " Grants as in `[tools.script.<name>]`; other keys are its `config`."
        text = each.get("description", "Documents from a connector script.")
        parts.append(f'### [knowledge.sources.&lt;name&gt;] with connector = "{name}"\n\n{text}{more}')
        parts.append(_settings(f"knowledge.{name}", each))
    return "\n\n".join(parts)


def _mcp() -> str:
    server = _without(schema(ServerSettings), "name")
    rule = schema(ToolRule)
    return "\n\n".join(
        [
            "One table for each server of others. See [MCP](../mcp.md).",
            "### [mcp.servers.&lt;name&gt;]",
            _settings("mcp", server),
            "### [mcp.servers.&lt;name&gt;.tools.&lt;tool&gt;]",
            _settings("mcp.tools", rule),
        ]
    )


def _serve() -> str:
    oauth = _settings("serve.oauth", schema(OAuthSettings))
    return f"{_settings('serve', schema(ServeSettings))}\n\n### [serve.oauth]\n\n{oauth}"


def _settings(section: str, given: dict[str, Any], kind: type[Any] | None = None) -> str:
    words = _docstrings(kind) if kind is not None else {}
    rows = []
    for key, each in given["properties"].items():
        if "const" in each:
            continue
        text = each.get("description") or words.get(key) or OWN_WORDS.get(f"{section}.{key}")
        if not text:
            raise ValueError(f"[{section}] {key} has no description: give its field a docstring")
        needed = key in given.get("required", ())
        default = "required" if needed else _shown(each["default"]) if "default" in each else "–"
        rows.append((f"`{key}`", _kind(each), default, text))
    return table(HEADS, rows)


def _kind(given: dict[str, Any]) -> str:
    if "enum" in given:
        return " or ".join(f"`{json.dumps(value)}`" for value in given["enum"])
    for several in ("anyOf", "oneOf"):
        if several in given:
            kinds = [_kind(each) for each in given[several] if each.get("type") != "null"]
            return " or ".join(dict.fromkeys(kinds))
    if "$ref" in given:
        return "table"
    named = given.get("type", "any")
    kinds = [_NAMES.get(each, each) for each in ([named] if isinstance(named, str) else named) if each != "null"]
    if kinds == ["list"] and "items" in given:
        return f"list of {_kind(given['items'])}s"
    return " or ".join(kinds)


_NAMES = {"string": "text", "boolean": "true or false", "array": "list", "object": "table"}


def _shown(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, tuple):
        value = list(value)
    if isinstance(value, list) and len(value) > 6:
        return "texts, Markdown, HTML and PDF" if "*.md" in value else f"{len(value)} entries"
    return f"`{json.dumps(value, ensure_ascii=False)}`"


def _without(given: dict[str, Any], key: str) -> dict[str, Any]:
    return {**given, "properties": {name: each for name, each in given["properties"].items() if name != key}}


def _docstrings(kind: type[Any]) -> dict[str, str]:
    """The text that follows each field in the class's source."""
    body = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0]
    assert isinstance(body, ast.ClassDef)
    found = {}
    for field, after in zip(body.body, body.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(after, ast.Expr):
            text = after.value
            if isinstance(text, ast.Constant) and isinstance(text.value, str):
                found[field.target.id] = text.value
    return found
