"""Files that are nested too deeply: each command that reads one says so, and changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import Moonbox

DEEP = 50_000
LIST = "[" * DEEP + "]" * DEEP
OBJECT = '{"a":' * DEEP + "1" + "}" * DEEP
DOTTED = f"[tools]\n{'.'.join('a' * 3000)} = 1\n"
CONFIG, FILE = ("-c", "file"), ("--file", "file")


@pytest.mark.parametrize(
    ("text", "command", "says"),
    [
        (OBJECT, ("mcp", "install", "--client", "cursor", *FILE), "contains comments or errors, which would be lost"),
        (LIST, ("mcp", "uninstall", "--client", "cursor", *FILE), "contains comments or errors, which would be lost"),
        (LIST, ("mcp", "add", "--from", "cursor", *FILE), "is not valid JSON"),
        (OBJECT, ("mcp", "list", "--mcp-config", "file"), "is not valid JSON"),
        (f"x = {LIST}", ("mcp", "install", "--client", "codex", *FILE), "is not valid TOML"),
        (f"x = {'1' * 5000}", ("mcp", "install", "--client", "codex", *FILE), "is not valid TOML"),
        (DOTTED, ("mcp", "install", "--client", "codex", *FILE), "cannot be changed safely"),
        (f"x = {LIST}", ("run", "-e", "1", *CONFIG), "is not valid TOML"),
        (DOTTED, ("run", "-e", "1", *CONFIG), "[tools.a] a is nested too deeply"),
        (DOTTED, ("trust", "file"), "[tools.a] a is nested too deeply"),
        (DOTTED, ("mcp", "add", "x", *CONFIG, "--", "ls"), "[tools.a] a is nested too deeply"),
        (LIST, ("run", "-e", "1", "--input", "file"), "is not valid JSON: it is nested too deeply"),
    ],
)
def test_a_file(moonbox: Moonbox, tmp_path: Path, text: str, command: tuple[str, ...], says: str) -> None:
    (tmp_path / "file").write_text(text)
    done = moonbox(*command)
    assert (done.returncode, says in done.stderr) == (2, True), done.stderr
    assert (tmp_path / "file").read_text() == text


def test_examples_of_a_tool_script(moonbox: Moonbox, tmp_path: Path) -> None:
    (tmp_path / "a.lua").write_text("tool = {} function tool.execute() return 1 end")
    (tmp_path / "a.examples.json").write_text(LIST)
    done = moonbox("tool", "test", "a.lua")
    assert (done.returncode, "a.examples.json is not valid JSON" in done.stderr) == (2, True), done.stderr


def test_a_run_that_is_saved(moonbox: Moonbox, tmp_path: Path) -> None:
    """A long bracket of Lua looks like an array of JSON."""
    (tmp_path / "moonbox.toml").write_text("[tools]\nsaved = 'saved'\n[audit]\npath = 'trail.db'\n")
    (tmp_path / "deep.lua").write_text(f"local text = [[{LIST[: DEEP // 2]}]]\nreturn #text\n")
    assert moonbox("run", "deep.lua").stdout == f"{DEEP // 2}\n"
    done = moonbox("script", "save", "--last", "--name", "deep", "--param", "text")
    assert (done.returncode, "text" in done.stderr) == (2, True), done.stderr


def test_the_file_of_agreements(moonbox: Moonbox, tmp_path: Path) -> None:
    (tmp_path / "home" / "state").mkdir(parents=True)
    (tmp_path / "home" / "state" / "trust.json").write_text(OBJECT)
    done = moonbox("trust", "--list")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
