"""The settings of a project's moonbox.toml, as each command obeys them."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest

from moonbox.audit.sinks import open_trail

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .conftest import Moonbox
    from .terminal import Terminal

    Open = Callable[..., Terminal]

RHAI = "let x = 3;\nx + 1\n"
SERVER = """
from mcp.server.mcpserver import MCPServer

server = MCPServer("notes")


@server.resource("note://a")
def note() -> str:
    return "a note"


server.run()
"""


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str], int]:
    return (tmp_path / "moonbox.toml").write_text


def test_scripts_without_a_suffix_are_in_the_language_of_the_project(
    moonbox: Moonbox, write: Callable[[str], int], tmp_path: Path
) -> None:
    write("[sandbox]\nlanguage = 'rhai'\n")
    (tmp_path / "script").write_text(RHAI)
    (tmp_path / "script.lua").write_text("local x = 3\nreturn x + 1\n")
    for command in (["run", "-e", RHAI], ["run", "-"], ["repl"], ["run", "script"], ["run", "script.lua"]):
        done = moonbox(*command, input=RHAI)
        assert (done.returncode, done.stdout) == (0, "4\n"), (command, done.stderr)
    assert moonbox("run", "--language", "lua", "-e", "local x = 3 return x").stdout == "3\n"
    assert moonbox("run", "--no-config", "-e", "local x = 3 return x").stdout == "3\n"
    assert moonbox("check", "-", "script", "script.lua", input=RHAI).returncode == 0
    assert moonbox("check", "-", "--language", "lua", input=RHAI).returncode == 1


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ("language = 'ruby'", "unknown language 'ruby'; known languages: lua, rhai, python"),
        ("lua_features = ['goto']", "lua_features: unknown feature 'goto'; known features: coroutines, metatables"),
        ("require = ['secomp']", "unknown layer 'secomp'; did you mean 'seccomp'?"),
        ("min_workers = -1", "min_workers must be a whole number of at least 0, not -1"),
        ("min_workers = 9\nmax_workers = 2", "min_workers (9) must not be more than max_workers (2)"),
        ("language = 'rhai'\nlua_features = ['coroutines']", "the language 'rhai' has no features to open"),
    ],
)
def test_a_wrong_sandbox_is_an_error_of_the_file(
    moonbox: Moonbox, write: Callable[[str], int], settings: str, says: str
) -> None:
    write(f"[sandbox]\n{settings}\n")
    for command in (["run", "-e", "1"], ["repl"], ["catalog"], ["check", "-"]):
        done = moonbox(*command)
        assert (done.returncode, done.stderr) == (2, f"error: moonbox.toml: [sandbox] {says}\n"), command


def test_doctor_finds_what_only_the_parts_can_judge(moonbox: Moonbox, write: Callable[[str], int]) -> None:
    write("[sandbox]\nlanguage = 'ruby'\n[audit]\npath = 'trail.txt'\n")
    done = moonbox("doctor", "--json")
    assert done.returncode == 1
    assert "[sandbox] unknown language 'ruby'" in done.stdout and "[audit] unknown audit sink" in done.stdout


@pytest.fixture
def missing() -> str:
    """A layer of the jail that there is not on this machine."""
    from moonbox.worker.jail import report

    layers = [layer.name for layer in report() if not layer.active]
    return layers[0] if layers else pytest.skip("every layer is active here")


def test_nothing_of_a_project_runs_without_the_layers_that_it_requires(
    moonbox: Moonbox, write: Callable[[str], int], tmp_path: Path, missing: str
) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "hi.lua").write_text("tool = {} function tool.execute() return 'hi' end")
    (tmp_path / "scan.lua").write_text("connector = {} function connector.scan() return {} end")
    source = "[knowledge.sources.a]\nconnector = 'lua'\npath = 'scan.lua'\n"
    write(f"[tools]\nfolders = ['tools']\n{source}[sandbox]\nrequire = ['{missing}']\n")
    for command in (
        ["run", "-e", "1"],
        ["repl"],
        ["tool", "list"],
        ["tool", "check"],
        ["tool", "test", "hi"],
        ["sync"],
    ):
        done = moonbox(*command)
        assert (done.returncode, "required layer of the jail missing" in done.stderr) == (1, True), command
    done = moonbox("doctor", "--json")
    assert (done.returncode, "required layer of the jail missing" in done.stdout) == (1, True)


def test_tool_scripts_are_tested_with_the_limits_of_the_project(
    moonbox: Moonbox, write: Callable[[str], int], tmp_path: Path
) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "long.lua").write_text("tool = {} function tool.execute() return #('a'):rep(5000) end")
    write("[tools]\nfolders = ['tools']\n[limits]\nmax_string = 1000\n")
    for command in (["run", "-e", "return tools.long{}"], ["tool", "test", "long"]):
        done = moonbox(*command)
        assert (done.returncode, "max_string is 1000" in done.stderr) == (1, True), (command, done.stderr)


def test_runs_are_recorded_where_the_project_says(
    moonbox: Moonbox, write: Callable[[str], int], tmp_path: Path
) -> None:
    write("[audit]\n")
    moonbox("run", "-e", "1")
    write("[audit]\nenabled = false\npath = 'trail.db'\n")
    moonbox("run", "-e", "2")
    assert not (tmp_path / "trail.db").exists() and not (tmp_path / "home" / "audit.db").exists()
    write("[audit]\npath = 'trail.db'\nmax_runs = 4\nredact = ['word']\n")
    for number in range(3, 8):
        moonbox("run", "-e", f"return {number}")
    moonbox("run", "-e", "return 8", "--audit", "off")
    moonbox("run", "-e", "return 9", "--audit", "on")
    assert [run.title for run in open_trail(tmp_path / "trail.db").list()] == ["return 7", "return 6", "return 5"]
    assert [run.title for run in open_trail(tmp_path / "home" / "audit.db").list()] == ["return 9"]
    assert moonbox("audit", "stats").stdout.startswith("3 runs")
    assert moonbox("audit", "stats", "--db", "home/audit.db").stdout.startswith("1 run,")
    assert "return 7" in moonbox("audit", "show", "--last").stdout
    write("[audit]\nenabled = true\n")
    moonbox("repl", input="8\n")
    assert moonbox("audit", "stats").stdout.startswith("2 runs")


def test_the_note_of_a_recorded_run_names_a_trail_that_is_not_the_usual_one(terminal: Open, tmp_path: Path) -> None:
    screen = terminal("run", "-e", "1", "--audit", "other.db")
    assert screen.expect("--db other.db")
    assert screen.ended() == 0


HOME = """
audit.path = "~/mine/trail.db"
journal.path = "~/mine/state.db"
tools.folders = ["~/mine/tools"]
tools.saved = "~/mine/saved"
tools.python = ["~/kit.py:add"]
tools.script.one.path = "~/mine/one.lua"
knowledge.path = "~/mine/store.db"
knowledge.sources.a = { connector = "filesystem", path = "~/mine" }
openapi.api.spec = "~/mine/api.json"
"""


def test_paths_in_the_home_folder(moonbox: Moonbox, write: Callable[[str], int], tmp_path: Path) -> None:
    for name in ("tools/two.lua", "saved/three.lua", "one.lua"):
        (tmp_path / "mine" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "mine" / name).write_text("tool = {} function tool.execute() return 1 end")
    (tmp_path / "mine" / "note.md").write_text("a note")
    paths = {"/x": {"get": {"operationId": "four"}}}
    api = {"openapi": "3.1.0", "info": {"title": "a", "version": "1"}, "servers": [{"url": "http://localhost"}]}
    (tmp_path / "mine" / "api.json").write_text(json.dumps({**api, "paths": paths}))
    write(HOME)
    source = "return tools.one{} + tools.two{} + tools.three{} + tools.add{a = 1}, docs['tools.api.four'] ~= nil"
    for command, says in ((["sync"], "a: 1 document "), (["run", "-e", source], "5\ntrue\n")):
        done = moonbox(*command)
        assert (done.returncode, says in done.stdout) == (0, True), (done.stdout, done.stderr)
    assert {"trail.db", "state.db", "store.db"} <= {path.name for path in (tmp_path / "mine").iterdir()}
    assert not (tmp_path / "~").exists()


def test_scripts_read_the_resources_that_a_server_grants_them(
    moonbox: Moonbox, write: Callable[[str], int], tmp_path: Path
) -> None:
    (tmp_path / "server.py").write_text(SERVER)
    write(f"[mcp.servers.notes]\ncommand = '{sys.executable}'\nargs = ['server.py']\nscripts = ['resources']\n")
    done = moonbox("run", "-e", "return mcp.read('note://a')")
    assert (done.returncode, done.stdout) == (0, "a note\n"), done.stderr
    assert moonbox("check", "-", "--strict", input="return mcp.read('note://a')").returncode == 0


def test_nothing_is_taken_down_where_nothing_runs(
    moonbox: Moonbox, write: Callable[[str], int], tmp_path: Path
) -> None:
    write("[journal]\npath = 'state.db'\n[cluster]\naddress = 'ray://127.0.0.1:1'\nsleep_after = 1\n")
    assert moonbox("check", "-", input="return 1").returncode == 0
    assert moonbox("catalog").returncode == 0
    assert not (tmp_path / "state.db").exists()


def test_a_run_is_resumed_without_the_project(moonbox: Moonbox, write: Callable[[str], int]) -> None:
    write("[journal]\npath = 'state.db'\n")
    done = moonbox("replay", "0123", "--no-config")
    assert "name the journal with --journal" in done.stderr


def test_a_wrong_journal_of_the_command_line_is_not_an_error_of_the_file(
    moonbox: Moonbox, write: Callable[[str], int]
) -> None:
    write("[journal]\npath = 'state.db'\n")
    for command in (["run", "-e", "1"], ["runs"]):
        done = moonbox(*command, "--journal", "mysql://a")
        assert (done.returncode, done.stderr) == (2, "error: url must begin with postgresql://\n")
