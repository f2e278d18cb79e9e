"""Every setting with values of every type: an error of the file, or accepted, but never a failure of moonbox itself."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import pytest

from moonbox.config import SECTIONS, Config, sections, sources
from moonbox.config import mcp as servers
from moonbox.errors import ConfigError
from moonbox.limits import Limits
from moonbox.project.sections import problems
from moonbox.project.trust import powers, trust_hash

if TYPE_CHECKING:
    from pathlib import Path

VALUES = (
    *("3", "-1", "1e400", "nan", "true", '"x"', '""', '"http://["', '"http://a:99999999/"', "1979-05-27", "[]", "[1]"),
    '"~unknown-user/x.db"',
    *('["a", 2]', '[["a"]]', "[{ a = 1 }]", "{}", "{ a = 1 }", '"${UNSET}"', '["${UNSET}"]', '{ a = "${UNSET}" }'),
)
API = "spec = 'a.json'\nbase_url = 'https://a.example'\n"
URL = "url = 'https://a.example'\n"
TABLES: list[tuple[str, str, Any]] = [
    ("sandbox", "", sections.SandboxSettings),
    ("limits", "", Limits),
    ("limits", "timeout = 3\n", ["preset"]),
    ("audit", "", sections.AuditSettings),
    ("cluster", "", sections.ClusterSettings),
    ("journal", "", sections.JournalSettings),
    ("tools", "", sections.ToolsTable),
    ("tools.script.a", "path = 'a.lua'\n", sections.ScriptTable),
    ("llm", "provider = 'openai'\nmodel = 'm'\n", sections.LlmSettings),
    ("codemode", "", sections.CodeModeSettings),
    ("serve", "", sections.ServeSettings),
    ("knowledge", "", ["path", "embeddings", "sources"]),
    ("knowledge.sources.a", "connector = 'filesystem'\npath = '.'\n", ["connector", "path", "include", "hidden"]),
    ("knowledge.sources.a", "connector = 'web'\n", ["urls", "sitemaps", "max_pages", "timeout"]),
    ("mcp", "", ["servers"]),
    ("mcp.servers.a", "command = 'x'\n", servers.ServerSettings),
    ("mcp.servers.a", URL, servers.ServerSettings),
    ("openapi", "", ["a"]),
    ("openapi.a", API, sources.OpenApiSettings),
    ("openapi.a.auth", "", sources.ApiCredentials),
    ("sql", "", ["a"]),
    ("sql.a", "url = 'sqlite:///a.db'\n", sources.SqlSettings),
]


@pytest.mark.parametrize(("table", "rest", "keys"), TABLES)
def test_each_key(tmp_path: Path, table: str, rest: str, keys: Any) -> None:
    names = keys if isinstance(keys, list) else [item.name for item in dataclasses.fields(keys)]
    for name in names:
        others = "".join(f"{line}\n" for line in rest.splitlines() if not line.startswith(f"{name} ="))
        for value in VALUES:
            text = f"[{table}]\n{others}{name} = {value}\n"
            config = Config.parse(text, tmp_path / "moonbox.toml", environ={})
            assert powers(config) is not None and trust_hash(config)
            for message in problems(config).values():
                start = f"{tmp_path / 'moonbox.toml'}: [{table.partition('.')[0]}"
                assert all(line.startswith(start) for line in message.splitlines()), (text, message)


@pytest.mark.parametrize("section", SECTIONS)
def test_a_section_that_is_no_table(tmp_path: Path, section: str) -> None:
    config = Config.parse(f"{section} = 3", tmp_path / "moonbox.toml")
    assert problems(config) == {section: f"{config.path}: [{section}] must be a table, not 3"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[limits]\npreset = []", "[limits] unknown limits preset '[]'"),
        ("[cluster]\nsleep_after = 3", '[cluster] sleep_after needs a journal: write path = "state.db" under'),
        ("[mcp.servers.a]\nurl = 'http://a:99999999/'", "[mcp.servers.a] url is invalid: Port out of range 0-65535"),
        ("[mcp.servers.a]\ncommand = 'x'\nargs = 3", "[mcp.servers.a] args must be an array, not 3"),
    ],
)
def test_what_is_wrong(tmp_path: Path, text: str, message: str) -> None:
    (wrong,) = problems(Config.parse(text, tmp_path / "moonbox.toml")).values()
    assert wrong.startswith(f"{tmp_path / 'moonbox.toml'}: {message}")


def test_the_arguments_of_a_program_are_not_taken_apart(tmp_path: Path) -> None:
    config = Config.parse("[mcp.servers.a]\ncommand = 'x'\nargs = 'abc'", tmp_path / "moonbox.toml")
    assert powers(config) == ("start the program `x` (the MCP server a)",)


@pytest.mark.parametrize("text", ["[tools]\nfolders = ['a', \"b\\u0000\"]", '[serve]\nhost = "\\u0000"'])
def test_a_text_with_the_character_nul(text: str) -> None:
    with pytest.raises(
        ConfigError, match=r"^moonbox.toml: \[(tools\] folders\[1\]|serve\] host) contains the character"
    ):
        Config.parse(text)
