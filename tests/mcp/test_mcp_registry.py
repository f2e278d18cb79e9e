"""Servers in moonbox.toml and in clients' files: `mcp add`, `remove`, `test` and `uninstall`."""

from __future__ import annotations

import json
import stat
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from moonbox.cli.app import app
from moonbox.errors import ConfigError, UsageError
from moonbox.mcp import imports
from moonbox.mcp.clients import ServerEntry, find, install, remove
from tests.programs import program

FILE = """# mine
[sandbox]
language = "lua"  # and this

[mcp.servers.old]
command = "x"
[mcp.servers.old.tools.a]
policy = "auto"

[serve]
port = 8000
"""


PATH = Path("moonbox.toml")


def run(*args: str, answer: str | None = None, fails: bool = False) -> str:
    """What the command says, on one line."""
    result = CliRunner().invoke(app, ["mcp", *args], input=answer)
    assert (result.exit_code != 0) is fails, result.output
    return " ".join(result.output.split())


def servers() -> Any:
    """Those in moonbox.toml."""
    return tomllib.loads(PATH.read_text())["mcp"]["servers"]


def client_file(path: str, text: Any) -> Path:
    """A client's file, with JSON if it is not text."""
    file = Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text if isinstance(text, str) else json.dumps(text))
    return file


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    monkeypatch.setenv("MOONBOX_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("MOONBOX_KEYRING", "off")


@pytest.fixture
def file() -> Path:
    """A configuration that is there already."""
    PATH.write_text(FILE)
    return PATH


@pytest.mark.parametrize(
    ("args", "table"),
    [
        (("--", "uvx", "mcp-server-time", "--local"), {"command": "uvx", "args": ["mcp-server-time", "--local"]}),
        (("--url", "https://a.example/mcp"), {"url": "https://a.example/mcp"}),
        (("--env", "KEY=a=b", "--", "server"), {"command": "server", "env": {"KEY": "a=b"}}),
        (
            ("--url", "https://a.example/mcp", "--header", "X-Key=${KEY:-x}"),
            {"url": "https://a.example/mcp", "headers": {"X-Key": "${KEY:-x}"}},
        ),
    ],
)
def test_add_and_remove_one_server(file: Path, args: tuple[str, ...], table: dict[str, Any]) -> None:
    assert "added the MCP server 'new'" in run("add", "new", *args)
    assert file.read_text().startswith(FILE)
    assert servers()["new"] == table
    assert "removed the MCP server 'new'" in run("remove", "new")
    assert file.read_text().strip() == FILE.strip()


def test_a_new_file_is_for_its_owner_alone() -> None:
    run("add", "time", "--env", "TOKEN=secret", "--", "uvx", "mcp-server-time")
    assert stat.S_IMODE(PATH.stat().st_mode) == 0o600


def test_remove_takes_the_tables_below_along_and_nothing_else(file: Path) -> None:
    imports.remove_server(file, "old")
    assert file.read_text() == '# mine\n[sandbox]\nlanguage = "lua"  # and this\n\n[serve]\nport = 8000\n'
    with pytest.raises(UsageError, match="unknown MCP server 'old'"):
        imports.remove_server(file, "old")


def test_what_cannot_be_changed_safely_is_left_alone() -> None:
    text = 'mcp = { servers = { old = { command = "x" } } }\n'
    PATH.write_text(text)
    with pytest.raises(ConfigError, match="cannot be changed safely; add this by hand"):
        imports.add_servers(PATH, {"new": {"command": "y"}})
    with pytest.raises(ConfigError, match="cannot be changed safely; remove"):
        imports.remove_server(PATH, "old")
    assert PATH.read_text() == text


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("add", "old", "--", "y"), "the MCP server 'old' exists already"),
        (("add", "new"), "moonbox mcp add NAME -- command"),
        (("add", "new", "--url", "https://a.example", "--", "x"), "a server has either a command or a --url, not both"),
        (("add", "new", "--url", "ftp://a.example"), "url must begin with"),
        (("add", "new", "--env", "KEY", "--", "x"), "--env takes NAME=VALUE, not 'KEY'"),
        (("add", "--from", "crsor"), "unknown client 'crsor'; did you mean 'cursor'?"),
        (("add", "--from", "cursor"), "cursor has no configuration file; looked for"),
        (("remove", "odl"), "unknown MCP server 'odl'; did you mean 'old'?"),
        (("test", "odl"), "unknown MCP server 'odl'; did you mean 'old'?"),
        (("uninstall",), "--client is required"),
    ],
)
def test_refusals(file: Path, args: tuple[str, ...], message: str) -> None:
    assert message in run(*args, fails=True)
    assert file.read_text() == FILE


def test_what_vscode_asks_for_is_a_variable_and_nobody_has_to_answer() -> None:
    old = {"servers": {"one": {"command": "x", "env": {"K": "${input:api-key}", "D": "${env:DIR}/${input:2nd}"}}}}
    theirs = client_file(".vscode/mcp.json", old)
    run("add", "--from", "vscode")
    assert servers()["one"]["env"] == {"K": "${API_KEY}", "D": "${DIR}/${INPUT_2ND}"}
    assert json.loads(theirs.read_text()) == old


def test_a_client_s_file_that_cannot_be_taken_over_changes_nothing(file: Path) -> None:
    client_file(".mcp.json", '{"mcpServers": {"a": {"command": "x", "args": ["${command:key}"]}}}')
    assert "is not the name of an environment variable" in run("add", "--from", "claude", fails=True)
    assert file.read_text() == FILE


def test_servers_of_a_client_that_are_invalid_or_exist_are_left_out(file: Path) -> None:
    listed = {"old": {"command": "other"}, "bad": {"foo": 1}, "worse": [1], "new": {"url": "https://a.example/mcp"}}
    client_file(".cursor/mcp.json", {"mcpServers": listed})
    output = run("add", "--from", "cursor", "--keep-old")
    assert "left out 'bad' of .cursor/mcp.json: [mcp.servers.bad] set either command or url" in output.replace(
        f"{Path.cwd()}/", ""
    )
    assert "worse must be an object, not [1]" in output
    assert "already has 'old'; use --replace to replace it" in output
    assert "added 1 MCP server" in output
    assert (servers().keys(), servers()["old"]["command"]) == ({"old", "new"}, "x")
    after = file.read_text()
    again = run("add", "--from", "cursor", fails=True)
    assert "already has 'old', 'new'; use --replace to replace them" in again
    assert file.read_text() == after


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"mcpServers": {', "is not valid JSON"),
        ("[]", 'contains no "mcpServers": {…}'),
        ('{"mcpServers": {}}', "contains no servers"),
        ('{"mcpServers": {"bad": {}}}', "contains no other servers"),
    ],
    ids=["broken", "list", "empty", "invalid"],
)
def test_a_file_without_servers_is_told_as_such(text: str, message: str) -> None:
    client_file(".cursor/mcp.json", text)
    assert message in run("add", "--from", "cursor", fails=True)
    assert not PATH.exists()


def test_a_program_that_is_not_there_is_told_at_once() -> None:
    assert "warning: there is no program 'no-such-program'" in run("add", "new", "--", "no-such-program")
    assert "warning" not in run("add", "shell", "--", "sh")


def test_replace(file: Path) -> None:
    run("add", "old", "--replace", "--url", "https://a.example/mcp")
    assert servers() == {"old": {"url": "https://a.example/mcp"}}
    assert tomllib.loads(file.read_text())["serve"] == {"port": 8000}


@pytest.mark.parametrize("yes", [True, False])
@pytest.mark.parametrize(
    ("client", "file", "root"),
    [
        ("cursor", "me/.cursor/mcp.json", "mcpServers"),
        ("claude", ".mcp.json", "mcpServers"),
        ("vscode", ".vscode/mcp.json", "servers"),
    ],
)
def test_take_over_what_a_client_has(client: str, file: str, root: str, yes: bool) -> None:
    entries = {
        "time": {"command": "uvx", "args": ["mcp-server-time"], "env": {"ZONE": "${env:ZONE}"}},
        "docs": {"url": "https://a.example/mcp"},
        "off": {"command": "x", "disabled": True},
    }
    path = client_file(file, {root: entries, "other": 1})
    assert "added 2 MCP servers" in run("add", "--from", client, answer="y\n" if yes else "n\n")
    assert servers() == {
        "time": {"command": "uvx", "args": ["mcp-server-time"], "env": {"ZONE": "${ZONE}"}},
        "docs": {"url": "https://a.example/mcp"},
    }
    left = json.loads(path.read_text())
    assert left["other"] == 1
    assert set(left[root]) == ({"off"} if yes else set(entries))
    assert bool(list(path.parent.glob("*.backup"))) is yes


SECRETS = {
    "github": {"command": "npx", "args": ["-y", "x"], "env": {"GITHUB_TOKEN": "ghp_literal1", "LEVEL": "debug"}},
    "other": {
        "command": "y",
        "args": ["--api-key", "k3y-literal2", "-v"],
        "env": {"GITHUB_TOKEN": "ghp_mine22"},
    },
    "linear": {"url": "https://a.example/mcp?api_key=q-literal3", "headers": {"Authorization": "Bearer lin_literal4"}},
    "clean": {"command": "z", "env": {"TOKEN": "${env:Z_TOKEN}"}},
}
LITERALS = ("ghp_literal1", "k3y-literal2", "ghp_mine22", "q-literal3", "lin_literal4")
PLACES = (
    "[mcp.servers.github] env.GITHUB_TOKEN, [mcp.servers.other] env.GITHUB_TOKEN, [mcp.servers.other] args[1], "
    "[mcp.servers.linear] headers.Authorization, [mcp.servers.linear] url.api_key"
)


def _secretive_client() -> Path:
    return client_file("me/.cursor/mcp.json", {"mcpServers": SECRETS})


@pytest.mark.parametrize("options", [("--secrets-as-variables", "--keep-old"), ()], ids=["option", "answer"])
def test_secrets_of_a_client_become_variables(options: tuple[str, ...]) -> None:
    path = _secretive_client()
    output = run("add", "--from", "cursor", *options, answer=None if options else "y\nn\n")
    assert not [secret for secret in LITERALS if secret in PATH.read_text() or secret in output]
    written = servers()
    assert written["github"]["env"] == {"GITHUB_TOKEN": "${GITHUB_TOKEN}", "LEVEL": "debug"}
    assert written["other"]["env"] == {"GITHUB_TOKEN": "${OTHER_GITHUB_TOKEN}"}, "it has a value of its own"
    assert written["other"]["args"] == ["--api-key", "${OTHER_API_KEY}", "-v"]
    assert written["linear"] == {
        "url": "https://a.example/mcp?api_key=${LINEAR_API_KEY}",
        "headers": {"Authorization": "Bearer ${LINEAR_AUTHORIZATION}"},
    }
    assert written["clean"]["env"] == {"TOKEN": "${Z_TOKEN}"}
    assert (
        "set these variables before you start moonbox: GITHUB_TOKEN, OTHER_GITHUB_TOKEN, OTHER_API_KEY, "
        f"LINEAR_AUTHORIZATION, LINEAR_API_KEY; their values are in {path.resolve()}" in output
    )
    if not options:
        assert f"contains 5 secrets: {PLACES} Write ${{NAME}} in their place? [y/N]" in output


def test_secrets_that_stay_in_the_file_are_named_and_the_file_is_for_its_owner_alone(file: Path) -> None:
    _secretive_client()
    file.chmod(0o644)
    output = run("add", "--from", "cursor", "--keep-secrets", "--keep-old")
    assert servers()["github"]["env"]["GITHUB_TOKEN"] == "ghp_literal1"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert f"contains 5 secrets: {PLACES}; only you can read the file now." in output
    assert not [secret for secret in LITERALS if secret in output]


def test_a_secret_of_one_server_is_named_too(file: Path) -> None:
    file.chmod(0o664)
    plain = run("add", "plain", "--env", "LEVEL=debug", "--", "sh")
    assert ("warning" in plain, stat.S_IMODE(file.stat().st_mode)) == (False, 0o664)
    output = run("add", "new", "--header", "Authorization=Bearer abcdefgh", "--url", "https://a.example")
    assert "contains 1 secret: [mcp.servers.new] headers.Authorization; only you can read the file now." in output
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("command", "place"),
    [
        (("python", "-m", "mcp_server_files"), None),
        (("python", "-c", "print(1)"), None),
        (("npx", "-y", "@scope/server-2025-01-01", "--folder", "some/folder/of-mine2"), None),
        (("docker", "run", "-e", "LEVEL=debug-all-1", "image"), None),
        (("docker", "run", "-e", "GITHUB_TOKEN=abcdefgh1", "image"), "args[2]"),
        (("server", "--api-key", "abcdefgh"), "args[1]"),
        (("server", "--with", "ghp_abcdefgh1234"), "args[1]"),
        (("server", "--id=0123456789abcdef0123456789abcdef"), "args[0]"),
    ],
)
def test_arguments_are_secrets_where_their_names_or_forms_say_so(command: tuple[str, ...], place: str | None) -> None:
    output = run("add", "new", "--", *command)
    assert ("contains" in output) == (place is not None)
    assert place is None or f"contains 1 secret: [mcp.servers.new] {place};" in output


@pytest.mark.parametrize("name", ["cursor", "codex"])
def test_uninstall_removes_what_install_added(name: str, tmp_path: Path) -> None:
    client, path = find(name), tmp_path / "file"
    before = '{\n  "mcpServers": {\n    "a": {\n      "command": "x"\n    }\n  }\n}\n'
    path.write_text('# mine\n[mcp_servers.a]\ncommand = "x"\n' if client.form == "toml" else before)
    text = path.read_text()
    install(client, ServerEntry("moonbox", "/opt/moonbox"), path)
    removed = remove(client, ["moonbox"], path)
    assert (removed.done, path.read_text().strip()) == ("removed", text.strip())
    assert removed.backup is not None
    assert remove(client, ["moonbox"], path).done == "unchanged"


def test_uninstall_by_the_command() -> None:
    run("install", "--client", "cursor", "--project")
    assert "moonbox" in json.loads(Path(".cursor/mcp.json").read_text())["mcpServers"]
    assert "removed the entry 'moonbox'" in run("uninstall", "--client", "cursor", "--project")
    assert json.loads(Path(".cursor/mcp.json").read_text()) == {"mcpServers": {}}
    assert "there is no entry 'moonbox'" in run("uninstall", "--client", "cursor", "--project")


def test_what_a_server_can_do() -> None:
    server = Path(__file__).with_name("everything_server.py")
    run("add", "every", "--", *program(server, "stdio"))
    report = json.loads(run("test", "every", "--json"))
    assert (report["server"], report["prompts"], report["resources"], report["templates"]) == ("everything 1", 4, 3, 1)
    assert report["tools"] >= 19
    assert report["annotated"] == report["with_result_schema"] == 1
    assert set(report["seconds"]) == {"start", "first_list", "list"}
    assert report["problems"] == []
    run("add", "broken", "--", sys.executable, "-c", "raise SystemExit('no')")
    output = run("test", "broken", fails=True)
    assert "the MCP server 'broken' failed: it exited with status 1; its last output: no" in output
