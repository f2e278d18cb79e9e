"""`moonbox check`: what is wrong with scripts, without running them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import Moonbox


def test_a_script_without_mistakes(moonbox: Moonbox, tmp_path: Path) -> None:
    (tmp_path / "good.lua").write_text("return tools.add{a = 1}\n")
    done = moonbox("check", "good.lua", "--tools", "kit:box")
    assert (done.returncode, done.stdout) == (0, "")


def test_file_line_caret_and_hint(moonbox: Moonbox, tmp_path: Path) -> None:
    (tmp_path / "bad.lua").write_text("local x = 1\nreturn tools.ad{a = x}, totl\n")
    done = moonbox("check", "bad.lua", "--tools", "kit:box")
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        "bad.lua:2: error: unknown tool 'ad'",
        "2 | return tools.ad{a = x}, totl",
        "  |              ^",
        "  hint: did you mean tools.add?",
        "bad.lua:2: note: 'totl' is not set anywhere: it is nil",
        "2 | return tools.ad{a = x}, totl",
        "  |                         ^",
    ]


def test_notes_count_with_strict(moonbox: Moonbox) -> None:
    assert moonbox("check", "-", input="return totl").returncode == 0
    assert moonbox("check", "-", "--strict", input="return totl").returncode == 1


def test_a_syntax_error_in_each_language(moonbox: Moonbox, tmp_path: Path) -> None:
    (tmp_path / "a.lua").write_text("local x = 0\nx += 1\n")
    (tmp_path / "b.rhai").write_text("let x = vec![1];\n")
    (tmp_path / "c.py").write_text("x = 1\ny = (1,\n")
    (tmp_path / "d.py").write_text('d = {\'a\': 1}\nf"{d["a"]}"\n')  # as newer Pythons allow
    done = moonbox("check", "a.lua", "b.rhai", "c.py", "d.py", "--json")
    assert done.returncode == 1
    found = [(item["file"], item["line"], item["hint"]) for item in json.loads(done.stdout)]
    assert found == [
        ("a.lua", 2, "Lua has no +=; write: x = x + 1"),
        ("b.rhai", 1, "there are no macros: an array is written [1, 2]"),
        ("c.py", 3, None),
    ]


def test_a_missing_file(moonbox: Moonbox) -> None:
    done = moonbox("check", "nope.lua")
    assert (done.returncode, done.stderr) == (2, "error: the file 'nope.lua' does not exist\n")


def test_a_server_is_started_only_for_scripts_that_may_use_it(moonbox: Moonbox, tmp_path: Path) -> None:
    (tmp_path / "moonbox.toml").write_text("[mcp.servers.gone]\ncommand = 'no-such'\n")
    done = moonbox("check", "-", input="return 1")
    assert (done.returncode, done.stderr) == (0, "")
    done = moonbox("check", "-", input="return tools.gone")
    assert "the MCP server 'gone' is not available" in done.stderr
