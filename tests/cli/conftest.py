"""`moonbox` as a person or a program calls it: in a process of its own, in a pipe or in a terminal."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from tests.programs import program

from .terminal import Terminal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

TOOLS = '''
"""Tools for tests."""

from moonbox import Media, Toolbox, tool


@tool
def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


@tool
def noisy() -> str:
    """Print something."""
    print("from the tool")
    return "done"


@tool
def chart(name: str) -> Media:
    """A chart."""
    return Media(b"\\x89PNG\\r\\n\\x1a\\npixels", name=name)


@tool(policy="approve")
def delete(path: str) -> str:
    """Delete a file for good."""
    return f"deleted {path}"


@tool
def wait(fifo: str) -> str:
    """Wait until somebody writes."""
    with open(fifo) as file:
        return file.read()


def double(x: int) -> int:
    """Twice as much."""
    return x * 2


box = Toolbox([add, double])
number = 5
'''


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "PYTHONPATH", "LANG", "LC_ALL")}
    return {**kept, "MOONBOX_HOME": str(tmp_path / "home"), "HOME": str(tmp_path), "MOONBOX_TRUST": "1"}


@pytest.fixture
def moonbox(tmp_path: Path, environment: dict[str, str]) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Call it in a pipe, in a folder that holds `kit.py`."""
    (tmp_path / "kit.py").write_text(TOOLS, encoding="utf-8")

    def call(*args: str, input: str | bytes = "", **more: Any) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            program("-m", "moonbox", *args),
            input=input.encode() if isinstance(input, str) else input,
            capture_output=True,
            cwd=tmp_path,
            env={**environment, **more.get("env", {})},
            timeout=100,
            check=False,
        )
        out, err = done.stdout.decode("utf-8", "surrogateescape"), done.stderr.decode("utf-8", "surrogateescape")
        return subprocess.CompletedProcess(done.args, done.returncode, out, err)

    return call


@pytest.fixture
def terminal(tmp_path: Path, environment: dict[str, str]) -> Iterator[Callable[..., Terminal]]:
    """Call it in a terminal, in the same folder."""
    (tmp_path / "kit.py").write_text(TOOLS, encoding="utf-8")
    opened: list[Terminal] = []

    def open_terminal(*args: str, **more: Any) -> Terminal:
        opened.append(Terminal(args, cwd=tmp_path, env={**environment, **more.pop("env", {})}, **more))
        return opened[-1]

    yield open_terminal
    for one in opened:
        one.close()
