"""The programs that moonbox is measured against, each in an environment of its own."""

from __future__ import annotations

import contextlib
import json
import select
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PATIENCE = 60.0
"""Seconds for one measurement."""
CACHE = HERE.parent / ".cache" / "bench"


@dataclass(frozen=True)
class Subject:
    """A program, the script that drives it, and what it needs installed."""

    name: str
    script: str
    packages: tuple[str, ...] = ()

    def python(self) -> Path:
        """Its interpreter; made when it is first asked for. moonbox and lupa use the one that runs this."""
        if not self.packages:
            return Path(sys.executable)
        folder = CACHE / self.name
        python = folder / "bin" / "python"
        ready, wanted = folder / "ready", "\n".join(self.packages)
        if not ready.exists() or ready.read_text(encoding="utf-8") != wanted:
            print(f"installing {', '.join(self.packages)} …", file=sys.stderr)
            try:
                subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
                subprocess.run([str(python), "-m", "pip", "install", "--quiet", *self.packages], check=True)
            except subprocess.CalledProcessError as problem:
                raise Unavailable(f"{self.name} cannot be installed ({problem})") from None
            ready.write_text(wanted, encoding="utf-8")
        return python


TRACING = "opentelemetry-api>=1.30,<2"
"""Monty looks for it in every run: where it is missing, the search takes several times as long as the run itself."""

SUBJECTS = (
    Subject("moonbox", "moonbox_subject.py"),
    Subject("pydantic-monty", "monty_subject.py", ("pydantic-monty>=1.4,<2", TRACING)),
    Subject("fastmcp", "fastmcp_subject.py", ("fastmcp>=4,<5", "pydantic-monty>=1.4,<2", TRACING)),
    Subject("smolagents", "smolagents_subject.py", ("smolagents>=1.26,<2",)),
    Subject("bare lupa", "lupa_bare.py"),
    Subject("quickjs-ng", "quickjs_subject.py", ("quickjs-ng>=0.17,<1",)),
)


class Unavailable(Exception):
    """A subject that cannot be installed or does not start."""


class Running:
    """A subject at work in a process of its own. One that dies or hangs has no further figures; the others go on."""

    def __init__(self, subject: Subject) -> None:
        self.name = subject.name
        self._process = subprocess.Popen(
            [str(subject.python()), str(HERE / "subjects" / subject.script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(HERE / "subjects"), "HOME": str(Path.home())},
        )
        hello = self._read()
        if hello is None:
            self.close()
            raise Unavailable(f"{self.name} does not start")
        self.rows = set(hello["rows"])

    def measure(self, row: str, *args: Any, pinned: bool = False) -> tuple[float, float | None] | None:
        """The figure, and the processor time of all processes where that is counted; None where there is none.

        With `pinned`, everything that the subject does is on one processor.
        """
        if row not in self.rows or self._process.poll() is not None:
            return None
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({"row": row, "args": args, "pinned": pinned}).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            return None
        answer = self._read()
        if answer is None or answer.get("problem"):
            why = "no answer" if answer is None else answer["problem"]
            print(f"  {self.name}: {row}: {why}", file=sys.stderr)
            return None
        return None if answer["value"] is None else (answer["value"], answer["cpu"])

    def close(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def _read(self) -> dict[str, Any] | None:
        """Its next line; None, and the end of it, when none comes in time."""
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], PATIENCE)
        line = self._process.stdout.readline() if ready else b""
        if not line:
            self._process.kill()
            self._process.wait()
            return None
        answer: dict[str, Any] = json.loads(line)
        return answer
