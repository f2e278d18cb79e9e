"""The configuration reference, from the settings that the code reads. A setting without a description is an error."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import griffe

from gen.api import SOURCE
from gen.table import GENERATED, table
from moonbox.config import SECTIONS
from moonbox.config.mcp import LoginSettings, ServerSettings, ToolRule
from moonbox.config.reader import schema
from moonbox.config.sections import (
    AuditSettings,
    ClusterSettings,
    CodeModeSettings,
    JournalSettings,
    LlmSettings,
    OAuthSettings,
    SandboxSettings,
    ScriptTable,
    ServeSettings,
    ToolsTable,
    ToolTable,
)
from moonbox.config.sources import ApiCredentials, OpenApiSettings, SqlSettings
from moonbox.knowledge.config import KnowledgeConfig
from moonbox.languages.registry import DEFAULT_LANGUAGE
from moonbox.limits import Limits
from moonbox.project.sections import connector_kinds
from moonbox.retry import Retry

HEADS = ("key", "type", "default", "meaning")
PRESETS = ("quick", "standard", "extended", "untrusted")

OWN_WORDS = {
    "limits.preset": "The base of the other limits: `default`, `quick`, `standard`, `extended` or `untrusted`.",
    f"knowledge.{DEFAULT_LANGUAGE}.path": "The connector script.",
    f"knowledge.{DEFAULT_LANGUAGE}.timeout": "Seconds for one call of its `scan`.",
}

OWN_KINDS = {"script.secrets": "array or table"}

INTRO = f"""{GENERATED}

# Configuration: the settings of moonbox.toml

`moonbox.toml` defines what moonbox serves and what scripts may do. moonbox searches for it in the working folder and
then in the folders above it. `moonbox init` creates a file with comments. Every section is optional. An unknown section
or key is an error with the file, the section and the key:
`moonbox.toml: [serve] unknown key 'prot'; did you mean 'port'?`

In a string, `${{NAME}}` is replaced by the environment variable `NAME`, `${{NAME:-default}}` has a default, and
`$${{…}}` becomes `${{…}}`. Relative paths are relative to the file.

If a variable is not set, only the part that uses it fails: the MCP server, the tool script, the source, or the section.
`moonbox doctor` and `moonbox mcp list` show the missing variables. Expanded values are secrets: moonbox replaces them
by `[secret NAME]` in results, errors, records and logs. Values of fewer than 6 characters are not secrets. Paths and
addresses without a password or query, short words, and numbers are secrets only if the name of the variable says so
(`…_TOKEN`, `…_KEY`, `…_PASSWORD`).

The same settings are available in Python: see [code mode](../code-mode.md), [limits](../limits.md),
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


SQL = "One table for each database: `[sql.<name>]`. See [databases](../sql.md)."


def page() -> str:
    sections = {
        "sandbox": lambda: _settings("sandbox", schema(SandboxSettings)),
        "limits": _limits,
        "audit": lambda: _settings("audit", schema(AuditSettings)),
        "cluster": lambda: _settings("cluster", schema(ClusterSettings)),
        "journal": lambda: _settings("journal", schema(JournalSettings)),
        "tools": _tools,
        "llm": lambda: _settings("llm", schema(LlmSettings)),
        "codemode": lambda: _settings("codemode", schema(CodeModeSettings)),
        "knowledge": _knowledge,
        "mcp": _mcp,
        "openapi": _openapi,
        "sql": lambda: f"{SQL}\n\n{_settings('sql', schema(SqlSettings))}",
        "serve": _serve,
    }
    missing = set(SECTIONS) ^ set(sections)
    assert not missing, f"sections without a reference, or references without a section: {missing}"
    parts = [INTRO, EXAMPLE, *(f"## [{name}]\n\n{make()}" for name, make in sections.items())]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _limits() -> str:
    rows = [("`preset`", "string", '`"default"`', OWN_WORDS["limits.preset"])]
    members = griffe.load("moonbox.limits", search_paths=[str(SOURCE)])["Limits"].members
    for field in dataclasses.fields(Limits):
        text = members[field.name].docstring.value
        kind = "number" if field.name == "timeout" else "integer"
        rows.append((f"`{field.name}`", kind, _shown(field.default), text))
    sets = [
        (f"`{field.name}`", *(_shown(getattr(Limits.preset(name), field.name)) for name in PRESETS))
        for field in dataclasses.fields(Limits)
    ]
    return f"{table(HEADS, rows)}\n\nThe presets:\n\n{table(('', *(f'`{name}`' for name in PRESETS)), sets)}"


def _tools() -> str:
    script = _settings("script", _without(schema(ScriptTable), "config"))
    others = "| any other key | any | – | Available in the script as `context.config.<key>`. |"
    one = f"A tool by its path, wherever it comes from.\n\n{_settings('tool', schema(ToolTable))}"
    retry = f"See [trying again](../tools.md#trying-again).\n\n{_settings('retry', schema(Retry))}"
    return "\n\n".join(
        [
            _settings("tools", schema(ToolsTable)),
            f"### [tools.script.&lt;name&gt;]\n\n{script}\n{others}",
            f"### [tools.&lt;name&gt;]\n\n{one}",
            f"### [tools.&lt;name&gt;.retry]\n\n{retry}",
        ]
    )


def _knowledge() -> str:
    whole = KnowledgeConfig.schema(connector_kinds())
    parts = [_settings("knowledge", whole)]
    parts.append("### [knowledge.embeddings]")
    for each in whole["properties"]["embeddings"]["anyOf"][0]["oneOf"]:
        provider = each["properties"]["provider"]["const"]
        if len(each["properties"]) > 1:
            parts.append(f'With `provider = "{provider}"`: {each.get("description", "")}')
            parts.append(_settings("knowledge.embeddings", each))
        else:
            parts.append(f'With `provider = "{provider}"` there are no further keys: the model runs in this process.')
    for each in whole["properties"]["sources"]["additionalProperties"]["oneOf"]:
        name = each["properties"]["connector"]["const"]
        more = "" if name != DEFAULT_LANGUAGE else " Grants as in `[tools.script.<name>]`; other keys are its `config`."
        text = each.get("description", "Documents from a connector script.")
        parts.append(f'### [knowledge.sources.&lt;name&gt;] with connector = "{name}"\n\n{text}{more}')
        parts.append(_settings(f"knowledge.{name}", each))
    return "\n\n".join(parts)


def _mcp() -> str:
    server = _without(schema(ServerSettings), "name")
    rule = schema(ToolRule)
    return "\n\n".join(
        [
            "One table for each MCP server. See [MCP](../mcp.md).",
            "### [mcp.servers.&lt;name&gt;]",
            _settings("mcp", server),
            "### [mcp.servers.&lt;name&gt;.tools.&lt;tool&gt;]",
            _settings("mcp.tools", rule),
            "### [mcp.servers.&lt;name&gt;.oauth]",
            _settings("mcp.oauth", schema(LoginSettings)),
        ]
    )


def _openapi() -> str:
    auth = _settings("openapi.auth", schema(ApiCredentials))
    own = _settings("openapi", schema(OpenApiSettings))
    about = "One table for each specification: `[openapi.<name>]`. See [OpenAPI](../openapi.md)."
    return f"{about}\n\n{own}\n\n### [openapi.&lt;name&gt;.auth]\n\n{auth}"


def _serve() -> str:
    oauth = _settings("serve.oauth", schema(OAuthSettings))
    return f"{_settings('serve', schema(ServeSettings))}\n\n### [serve.oauth]\n\n{oauth}"


def _settings(section: str, given: dict[str, Any]) -> str:
    rows = []
    for key, each in given["properties"].items():
        if "const" in each:
            continue
        text = each.get("description") or OWN_WORDS.get(f"{section}.{key}")
        if not text:
            raise ValueError(f"[{section}] {key} has no description: give its field a docstring")
        needed = key in given.get("required", ())
        default = "required" if needed else _shown(each["default"]) if "default" in each else "–"
        rows.append((f"`{key}`", OWN_KINDS.get(f"{section}.{key}") or _kind(each), default, text))
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
    if kinds == ["array"] and "items" in given:
        return f"array of {_kind(given['items'])}s"
    return " or ".join(kinds)


_NAMES = {"boolean": "true or false", "object": "table"}


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
