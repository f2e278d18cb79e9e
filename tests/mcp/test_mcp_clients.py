"""Entries in the configurations of clients: what is there stays, and a copy of it is kept."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from moonbox.errors import ConfigError, UsageError
from moonbox.mcp.clients import CLIENTS, ServerEntry, find, install, snippet
from moonbox.mcp.imports import servers_from_file

if TYPE_CHECKING:
    from moonbox.mcp.clients import ClientProgram

ENTRY = ServerEntry("moonbox", "/opt/moonbox", ("serve", "--config", "/home/me/moonbox.toml"), {"KEY": "v"})


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
def test_a_new_file_holds_the_entry_in_the_clients_form(client: ClientProgram, tmp_path: Path) -> None:
    path = tmp_path / "deep" / "file"
    outcome = install(client, ENTRY, path)
    assert (outcome.done, outcome.backup) == ("created", None)
    data = tomllib.loads(path.read_text()) if client.form == "toml" else json.loads(path.read_text())
    for key in client.root:
        data = data[key]
    assert data["moonbox"] == client.shape(ENTRY)
    assert path.read_text() == snippet(client, ENTRY)
    assert install(client, ENTRY, path).done == "unchanged"


def test_what_is_there_stays(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    before = (
        '{\n    "theme": "dark",\n    "mcpServers": {\n        "other": {"command": "x"}\n    },\n    "é": [1, 2]\n}\n'
    )
    path.write_text(before)
    path.chmod(0o600)
    outcome = install(find("cursor"), ENTRY, path)
    assert outcome.done == "added"
    assert outcome.backup is not None
    assert outcome.backup.read_text() == before
    after = path.read_text()
    assert list(json.loads(after)) == ["theme", "mcpServers", "é"]
    assert list(json.loads(after)["mcpServers"]) == ["other", "moonbox"]
    assert after.startswith('{\n    "theme"'), "its own indentation"
    assert "é" in after
    assert path.stat().st_mode & 0o777 == 0o600
    assert install(find("cursor"), ServerEntry("moonbox", "/elsewhere"), path).done == "replaced"
    assert json.loads(path.read_text())["mcpServers"]["moonbox"] == {"command": "/elsewhere", "args": ["serve"]}


def test_toml_is_changed_in_place(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(
        '# mine\nmodel = "x"\n\n[mcp_servers.moonbox]\ncommand = "old"\n[mcp_servers.moonbox.env]\nA = "b"\n\n'
        '[mcp_servers.other] # keep\ncommand = "y"\n'
    )
    assert install(find("codex"), ENTRY, path).done == "replaced"
    text = path.read_text()
    assert text.startswith('# mine\nmodel = "x"\n')
    assert "[mcp_servers.other] # keep" in text
    assert tomllib.loads(text)["mcp_servers"] == {
        "other": {"command": "y"},
        "moonbox": {"command": "/opt/moonbox", "args": list(ENTRY.args), "env": {"KEY": "v"}},
    }


@pytest.mark.parametrize(
    ("client", "text", "message"),
    [
        (
            "zed",
            '{\n  // a comment\n  "x": 1\n}',
            "contains comments or errors, which would be lost; add this by hand",
        ),
        ("cursor", '{"mcpServers": []}', "mcpServers is not an object; the file was not changed"),
        ("cursor", "[]", "mcpServers is not an object; the file was not changed"),
        ("codex", "model = ", "is not valid TOML"),
        ("codex", 'mcp_servers = { moonbox = { command = "x" } }', "cannot be changed safely; add this by hand"),
        ("codex", "mcp_servers = []", "cannot be changed safely; add this by hand"),
    ],
)
def test_a_file_that_would_be_harmed_is_left_alone(client: str, text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        install(find(client), ENTRY, path)
    assert message in str(caught.value)
    assert path.read_text() == text
    assert [item.name for item in tmp_path.iterdir()] == ["file"]


def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real.json").write_text("{}")
    (tmp_path / "link.json").symlink_to("real.json")
    install(find("cursor"), ENTRY, tmp_path / "link.json")
    assert (tmp_path / "link.json").is_symlink()
    assert "moonbox" in (tmp_path / "real.json").read_text()


def test_the_entry_names_whole_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    entry = ServerEntry.make("moonbox", config=Path("moonbox.toml"), mcp_config=[Path("mcp.json")])
    assert Path(entry.command).is_absolute()
    assert entry.args[-5:] == (
        "serve",
        "--config",
        f"{tmp_path}/moonbox.toml",
        "--mcp-config",
        f"{tmp_path}/mcp.json",
    )


def test_our_own_entry_is_not_started_by_ourselves(tmp_path: Path) -> None:
    for client in CLIENTS:
        if client.root[-1] in ("mcpServers", "servers", "context_servers"):
            path = tmp_path / client.name
            install(client, ServerEntry.make("me"), path)
            assert servers_from_file(path) == ()


def test_unknown_clients_and_missing_projects_are_told() -> None:
    with pytest.raises(UsageError, match=r"^unknown client 'curser'; did you mean 'cursor'\?$"):
        find("curser")
    with pytest.raises(UsageError, match=r"^Windsurf has no configuration file for projects; leave out --project$"):
        find("windsurf").file(project=True, folder=Path("/x"))
    assert find("claude-code").file(project=False, folder=Path("/x")) == Path("/x/.mcp.json")
    assert find("Claude Desktop").name == "claude-desktop"
