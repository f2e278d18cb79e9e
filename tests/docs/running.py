"""How each kind of block is run."""

from __future__ import annotations

import atexit
import functools
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from moonbox import Limits, Sandbox, tool
from tests.programs import program

from .pages import ROOT, Block

_SHOWN = re.compile(r"^(?P<code>\S.*?)\s+# → (?P<value>.*)$")
_EXPECTED = re.compile(r"(?:--|//|#) → (?P<value>.*)\s*\Z")
_FAILS = re.compile(r"(?:--|//|#) ✗ (?P<message>.*)\s*\Z")
_SCRIPTS = {"py": "python"}
"""How pages mark scripts whose language is that of the pages' own programs."""
_NOT_RUN = re.compile(r"make (?P<target>\w+)|python -m pip install|pip install")
"""They would build an environment or run all tests: what they need is checked instead."""


@tool
def add(a: float, b: float) -> float:
    """The sum of two numbers."""
    return a + b


@tool
def get_expenses(employee_id: int) -> list[dict[str, Any]]:
    """Expense items of one employee."""
    return [{"category": "travel", "amount": 100 * employee_id}, {"category": "meals", "amount": 25}]


@tool
def fetch(id: int) -> dict[str, Any]:
    """One record; there are five."""
    if id > 5:
        raise FileNotFoundError(f"no record {id}")
    return {"id": id, "title": f"record {id}", "parent": None}


SAMPLE_TOOLS = (add, get_expenses, fetch)


class Page:
    """A page that is being run: its names in Python, and the folder that holds its files."""

    def __init__(self, folder: Path, home: Path) -> None:
        self.folder, self.home = folder, home
        self.names: dict[str, Any] = {"__name__": "page"}
        self.shown = 0

    def run(self, block: Block) -> None:
        if block.title is not None:
            target = self.folder / block.title
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(block.text, encoding="utf-8")
        match block.language:
            case "python" if block.title is None:
                self._python(block)
            case "console":
                self._console(block)
            case "lua" | "rhai" | "py" if block.title is None:
                _script(block)
            case "toml":
                _configuration(block, self.folder)
            case "json":
                json.loads(block.text)

    def _python(self, block: Block) -> None:
        """Piece by piece, up to each value that is shown; line numbers of errors are those of the page."""
        pending: list[str] = []
        lines = block.text.splitlines()
        first = 0

        def flush(until: int) -> None:
            padded = "\n" * (block.line + first) + "\n".join(pending)
            exec(compile(padded, str(block.page), "exec", dont_inherit=True), self.names)
            pending.clear()

        for at, line in enumerate(lines):
            found = _SHOWN.match(line)
            if found is None:
                if not pending:
                    first = at
                pending.append(line)
                continue
            flush(at)
            value = eval(found["code"], self.names)
            assert repr(value) == found["value"], f"{block.where}: {found['code']} is {value!r}"
            self.shown += 1
        flush(len(lines))

    def _console(self, block: Block) -> None:
        path = os.pathsep.join([str(_commands()), str(Path(sys.executable).parent), os.environ["PATH"]])
        environment = {**os.environ, "PATH": path, "MOONBOX_HOME": str(self.home), "NO_COLOR": "1"}
        environment.pop("MOONBOX_AUDIT", None)
        steps = re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]
        assert steps, f"{block.where}: a console block has commands, after `$ `"
        for step in steps:
            command, _, expected = step.partition("\n")
            skipped = _NOT_RUN.match(command)
            if skipped is not None:
                assert skipped["target"] is None or _is_target(skipped["target"]), command
                continue
            done = subprocess.run(
                command,
                shell=True,
                cwd=self.folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=200,
                check=False,
            )
            came = done.stdout + done.stderr
            fits = expected.strip() == "…" or _same(came, expected)
            assert fits, f"{block.where}: {command}\nprinted:\n{came}\nexpected:\n{expected}"


@functools.cache
def _commands() -> Path:
    """A folder with the command `moonbox`, forked from a process that has loaded it."""
    folder = tempfile.TemporaryDirectory(prefix="moonbox-tests-")
    atexit.register(folder.cleanup)
    command = Path(folder.name) / "moonbox"
    command.write_text(f'#!/bin/sh\nexec {shlex.join(program("-m", "moonbox"))} "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    return command.parent


def _same(came: str, expected: str) -> bool:
    """Line by line; `…` in an expected line stands for anything, and as the last line for all that follows."""
    mine, theirs = came.strip().splitlines(), expected.strip().splitlines()
    if len(theirs) > 1 and theirs[-1].strip() == "…":
        theirs.pop()
        del mine[len(theirs) :]
    if len(mine) != len(theirs):
        return False
    for line, wanted in zip(mine, theirs, strict=True):
        pattern = ".*".join(re.escape(part) for part in wanted.rstrip().split("…"))
        if not re.fullmatch(pattern, line.rstrip()):
            return False
    return True


def _is_target(target: str) -> bool:
    return f"\n{target}:" in (ROOT / "Makefile").read_text("utf-8")


@functools.cache
def _box(language: str) -> Sandbox:
    box = Sandbox(SAMPLE_TOOLS, language=language, limits=Limits(timeout=60), min_workers=0)
    atexit.register(box.close)
    return box


def _script(block: Block) -> None:
    run = _box(_SCRIPTS.get(block.language, block.language)).run(block.text)
    if (fails := _FAILS.search(block.text)) is not None:
        assert run.error is not None, block.where
        assert run.error.message == fails["message"], f"{block.where}: {run.error.message}"
        return
    assert run.error is None, f"{block.where}: {run.error}"
    if (expected := _EXPECTED.search(block.text)) is not None:
        assert run.for_model() == expected["value"], f"{block.where}: {run.for_model()}"


class _Environment(dict[str, str]):
    """Has every variable."""

    def get(self, name: str, default: Any = None) -> Any:
        return f"the-value-of-{name}"


def _configuration(block: Block, folder: Path) -> None:
    """Each section as the part of moonbox reads it that it belongs to."""
    from moonbox.config import Config
    from moonbox.project.sections import problems

    config = Config.parse(block.text, folder / "moonbox.toml", environ=_Environment())
    assert problems(config) == {}, block.where
