"""Keys that were typed before a question are no answer to it."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from tests.cli.terminal import Terminal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

KIT = '''
from pathlib import Path
from moonbox import tool

@tool
def wait(fifo: str) -> str:
    """Wait until somebody writes."""
    return Path(fifo).read_text()

@tool(policy="approve")
def delete(path: str) -> str:
    """Delete a file for good."""
    return f"deleted {path}"
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "kit.py").write_text(KIT)
    os.mkfifo(tmp_path / "fifo")
    return tmp_path


@pytest.fixture
def screen(folder: Path) -> Iterator[Terminal]:
    environment = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    environment |= {"HOME": str(folder), "MOONBOX_HOME": str(folder / "home")}
    script = (
        "tools.wait{fifo = 'fifo'} local ok, e = pcall(tools.delete, {path = 'a'}) print(ok) tools.wait{fifo = 'fifo'}"
    )
    script += " return tools.delete{path = 'b'}"
    one = Terminal(["run", "-e", script, "--tools", "kit.py"], cwd=folder, env=environment)
    yield one
    one.close()


@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminals")
def test_what_was_typed_before_the_question_does_not_approve(screen: Terminal, folder: Path) -> None:
    screen.expect("wait")  # the line of calls: the script runs
    screen.type("y\na\ny")
    screen.expect("y")  # the terminal has them
    _let_go(folder)
    screen.expect("allow it? [y]es, [n]o, [a]lways, [e]dit: ")
    screen.type("n\n")
    screen.expect("wait")
    screen.type("always\n")
    screen.expect("always")
    _let_go(folder)
    screen.expect("allow it? [y]es, [n]o, [a]lways, [e]dit: ")
    screen.type("y\n")
    assert screen.ended() == 0
    assert "false" in screen.text
    assert "deleted b" in screen.rest


def _let_go(folder: Path) -> None:
    """Opening waits for the tool, which reads."""
    (folder / "fifo").write_text("on")
