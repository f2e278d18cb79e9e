"""`moonbox` as a person or a program calls it, in a pipe or in a terminal.

In a pipe most tests call it in this process, which costs no start: `moonbox`. Tests of streams, signals, logs and of
the start itself call it in a process of its own: `process`.
"""

from __future__ import annotations

import contextlib
import gc
import io
import logging
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest

from tests.programs import program

from .terminal import Terminal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    Done = subprocess.CompletedProcess[str]
    Moonbox = Callable[..., Done]

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
    """The variables of a command that finds `kit.py` in its folder."""
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "PYTHONPATH", "LANG", "LC_ALL")}
    (tmp_path / "kit.py").write_text(TOOLS, encoding="utf-8")
    return {**kept, "MOONBOX_HOME": str(tmp_path / "home"), "HOME": str(tmp_path), "MOONBOX_TRUST": "1"}


@pytest.fixture
def moonbox(tmp_path: Path, environment: dict[str, str]) -> Moonbox:
    """Call it in this process."""

    def call(*args: str, input: str | bytes = "", cwd: Path = tmp_path, env: Mapping[str, str] = {}) -> Done:
        return called(args, input, cwd, {**environment, **env})

    return call


def called(args: Sequence[str], input: str | bytes, cwd: Path, env: Mapping[str, str]) -> Done:
    """What `python -m moonbox` does, with the state of the process as it was before."""
    from moonbox.cli import main

    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", newline="\n", write_through=True) for _ in range(2))
    given = io.TextIOWrapper(io.BytesIO(input.encode() if isinstance(input, str) else input), "utf-8")
    root, handlers, level = logging.getLogger(), logging.root.handlers[:], logging.root.level
    root.handlers[:] = []
    known = set(sys.modules)
    try:
        with (
            contextlib.chdir(cwd),
            mock.patch.dict(os.environ, {**env, "COLUMNS": "80"}, clear=True),
            mock.patch.multiple(
                sys, stdin=given, stdout=out, stderr=err, argv=["moonbox", *args], path=[str(cwd), *sys.path]
            ),
            pytest.raises(SystemExit) as ended,
        ):
            main()
    finally:
        gc.enable()
        root.handlers[:] = handlers
        root.setLevel(level)
        for name in set(sys.modules) - known:
            if str(getattr(sys.modules[name], "__file__", "")).startswith(str(cwd)):
                del sys.modules[name]
    said = [stream.buffer.getvalue().decode("utf-8", "surrogateescape") for stream in (out, err)]
    return subprocess.CompletedProcess(args, int(ended.value.code or 0), *said)


@pytest.fixture
def process(tmp_path: Path, environment: dict[str, str]) -> Moonbox:
    """Call it in a process of its own, in the same folder."""

    def call(*args: str, input: str | bytes = "", env: Mapping[str, str] = {}) -> Done:
        done = subprocess.run(
            program("-m", "moonbox", *args),
            input=input.encode() if isinstance(input, str) else input,
            capture_output=True,
            cwd=tmp_path,
            env={**environment, **env},
            timeout=100,
            check=False,
        )
        out, err = done.stdout.decode("utf-8", "surrogateescape"), done.stderr.decode("utf-8", "surrogateescape")
        return subprocess.CompletedProcess(done.args, done.returncode, out, err)

    return call


@pytest.fixture
def terminal(tmp_path: Path, environment: dict[str, str]) -> Iterator[Callable[..., Terminal]]:
    """Call it in a terminal, in the same folder."""
    opened: list[Terminal] = []

    def open_terminal(*args: str, **more: Any) -> Terminal:
        opened.append(Terminal(args, cwd=tmp_path, env={**environment, **more.pop("env", {})}, **more))
        return opened[-1]

    yield open_terminal
    for one in opened:
        one.close()
