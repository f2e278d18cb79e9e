"""Attacks through a write grant: on the configuration, other scripts, the trail, and what the host runs or imports."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import pytest

from moonbox.config import Config
from moonbox.errors import Denied, ToolError
from moonbox.project.assembly import assemble
from moonbox.scripts.hostapi.api import HostApi
from moonbox.scripts.hostapi.grants import Grants

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TOML = """
[audit]
path = "trail.jsonl"

[tools]
folders = ["~/linked"]

[tools.script.writer]
path = "writer.lua"
write = ["."]
read = ["."]

[tools.script.payer]
path = "~/payer.lua"

[knowledge]
path = "store.db"

[mcp.servers.own]
command = "~/server.sh"
cwd = "~"
args = ["data.json"]
enabled = false
"""
WRITER = """
tool = {description = "Does what it is told.", parameters = {type = "object", properties = {
  action = {type = "string"}, path = {type = "string"}}, required = {"action", "path"}}}
function tool.execute(params)
  if params.action == "mkdir" then return fs.mkdir(params.path) end
  if params.action == "remove" then return fs.remove(params.path) end
  return fs[params.action](params.path, "evil")
end
"""
PAYER = 'tool = {description = "Pays.", policy = "approve"} function tool.execute() return 1 end'


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("MOONBOX_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOME", str(tmp_path))
    for name, text in {
        "moonbox.toml": TOML, "writer.lua": WRITER, "payer.lua": PAYER, "server.sh": "", "data.json": "",
        "scripts/more.lua": PAYER, "home/trust.json": "{}",
    }.items():  # fmt: skip
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "linked").symlink_to("scripts")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "up").symlink_to("..")
    (tmp_path / "innocent.txt").symlink_to("payer.lua")
    os.link(tmp_path / "payer.lua", tmp_path / "hard.txt")
    with assemble(Config.load(tmp_path / "moonbox.toml")) as parts:
        yield parts


PATHS = (
    "moonbox.toml", "MOONBOX.toml", "sub/moonbox.toml", "sub/up/moonbox.toml", "sub/../moonbox.toml",
    "payer.lua", "sub/up/payer.lua", "writer.lua", "./writer.lua",
    "linked", "linked/evil.lua", "scripts/more.lua", "scripts/evil.lua", "sub/up/scripts/evil.lua",
    "trail.jsonl", "trail.jsonl.new", "store.db", "store.db-wal", "server.sh", "data.json",
    "home/trust.json", "home/new", "home",
)  # fmt: skip


@pytest.mark.parametrize("action", ["write", "append", "remove", "mkdir"])
def test_no_grant_reaches_what_moonbox_itself_uses(project: Any, tmp_path: Path, action: str) -> None:
    writer = project.scripts.toolbox.resolve("writer")
    before = _contents(tmp_path)
    for path in PATHS:
        if action == "mkdir" and os.path.lexists(tmp_path / path):
            continue  # nothing is made
        with pytest.raises(ToolError) as caught:
            writer.call({"action": action, "path": path})
        assert caught.value.code == "protected", path
        assert _contents(tmp_path) == before, path


def test_a_link_to_a_protected_file_is_not_appended_to(project: Any, tmp_path: Path) -> None:
    writer = project.scripts.toolbox.resolve("writer")
    with pytest.raises(ToolError, match="moonbox itself uses it"):
        writer.call({"action": "append", "path": "innocent.txt"})
    with pytest.raises(ToolError, match="moonbox itself uses it"):
        writer.call({"action": "append", "path": "hard.txt"})
    assert writer.call({"action": "write", "path": "innocent.txt"}) == 4, "that replaces the link alone"
    assert writer.call({"action": "write", "path": "hard.txt"}) == 4, "that leaves the other name alone"
    assert (tmp_path / "payer.lua").read_text() == PAYER


@pytest.mark.parametrize("target", ["scripts/more.lua", "scripts/new.lua", "sub/moonbox.toml", "home/new"])
def test_a_link_to_a_protected_place_is_not_appended_to(project: Any, tmp_path: Path, target: str) -> None:
    (tmp_path / "harmless.txt").symlink_to(target)
    before = _contents(tmp_path)
    with pytest.raises(ToolError):
        project.scripts.toolbox.resolve("writer").call({"action": "append", "path": "harmless.txt"})
    assert _contents(tmp_path) == before


def test_everything_else_is_written_as_granted(project: Any, tmp_path: Path) -> None:
    writer = project.scripts.toolbox.resolve("writer")
    for action, path in (("write", "out.txt"), ("append", "sub/log.txt"), ("mkdir", "deep/er"), ("write", "deep/x.py")):
        writer.call({"action": action, "path": path})
    writer.call({"action": "remove", "path": "out.txt"})
    assert (tmp_path / "sub/log.txt").read_text() == "evil"
    assert (tmp_path / "deep/x.py").read_text() == "evil"


def test_modules_that_the_host_imports_are_not_writable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    with HostApi(Grants.from_dict({"write": ["."]}, tmp_path), environ={}) as api:
        for name in ("json.py", "sitecustomize.py", "evil.pth", "JSON.PY"):
            with pytest.raises(Denied, match="Python would import it"):
                api.call("fs.write", [name, "evil"])
        api.call("fs.write", ["notes.txt", "fine"])


def test_a_protected_place_that_is_moved_stays_protected(tmp_path: Path) -> None:
    """The same folder under a second name (a bind mount has the same identity) is the same folder."""
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "a.lua").write_text("x")
    (tmp_path / "other").symlink_to(tmp_path / "scripts")
    grants = Grants.from_dict({"write": ["other"]}, tmp_path, protected=[str(tmp_path / "scripts")])
    with HostApi(grants, environ={}) as api, pytest.raises(Denied, match="moonbox itself uses it"):
        api.call("fs.write", ["other/a.lua", "evil"])


def _contents(folder: Path) -> dict[str, Any]:
    return {
        str(path.relative_to(folder)): (path.is_symlink(), path.read_bytes() if path.is_file() else None)
        for path in sorted(folder.rglob("*"))
        if not path.name.startswith(("trail.jsonl", "store.db"))
    }
