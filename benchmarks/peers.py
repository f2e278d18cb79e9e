"""The programs that moonbox is measured against, each in an environment of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
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
        if not (folder / "ready").exists():
            print(f"installing {', '.join(self.packages)} …", file=sys.stderr)
            subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
            subprocess.run([str(python), "-m", "pip", "install", "--quiet", *self.packages], check=True)
            (folder / "ready").touch()
        return python


SUBJECTS = (
    Subject("moonbox", "moonbox_subject.py"),
    Subject("pydantic-monty", "monty_subject.py", ("pydantic-monty>=1.4,<2",)),
    Subject("fastmcp", "fastmcp_subject.py", ("fastmcp>=4,<5", "pydantic-monty>=1.4,<2")),
    Subject("smolagents", "smolagents_subject.py", ("smolagents>=1.26,<2",)),
    Subject("bare lupa", "lupa_bare.py"),
)


class Running:
    """A subject at work in a process of its own."""

    def __init__(self, subject: Subject) -> None:
        self.name = subject.name
        self._process = subprocess.Popen(
            [str(subject.python()), str(HERE / "subjects" / subject.script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(HERE / "subjects"), "HOME": str(Path.home())},
        )
        self.rows = set(self._read()["rows"])

    def measure(self, row: str, *args: Any) -> float | None:
        """The figure; None where it has no such thing or failed."""
        if row not in self.rows:
            return None
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"row": row, "args": args}) + "\n")
        self._process.stdin.flush()
        answer = self._read()
        if answer.get("problem"):
            print(f"  {self.name}: {row}: {answer['problem']}", file=sys.stderr)
        value: float | None = answer["value"]
        return value

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.name} ended unexpectedly")
        answer: dict[str, Any] = json.loads(line)
        return answer
