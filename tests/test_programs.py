"""Programs that tests fork instead of starting them: they behave as those that are started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest

from tests.programs import program

if TYPE_CHECKING:
    from pathlib import Path

ECHO = """
import os, sys
print(__name__, sys.argv, os.getcwd(), os.environ.get("WORD"), sys.path[0], sys.stdin.read(), flush=True)
print("é problem", file=sys.stderr)
sys.exit(int(os.environ["CODE"]))
"""
WAIT = "import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(600)\n"


def both(path: Path, *arguments: str) -> list[list[str]]:
    """The program as it is forked, and as it is started."""
    return [program(path, *arguments), [sys.executable, str(path), *arguments]]


@pytest.mark.parametrize("code", [0, 3])
def test_streams_arguments_folder_environment_and_status(tmp_path: Path, code: int) -> None:
    (tmp_path / "echo.py").write_text(ECHO)
    environment = {**os.environ, "WORD": "ö", "CODE": str(code)}
    forked, started = (
        subprocess.run(command, cwd=tmp_path, env=environment, input=b"in\xc3\xa4", capture_output=True, timeout=120)
        for command in both(tmp_path / "echo.py", "a b", "c")
    )
    assert (forked.returncode, forked.stdout, forked.stderr) == (code, started.stdout, started.stderr)
    assert started.returncode == code


def test_a_module_and_a_variable_of_the_interpreter(tmp_path: Path) -> None:
    (tmp_path / "here.py").write_text("import sys\nprint(__name__, sys.argv[1:], sys.flags.dev_mode)\n")
    command, environment = program("-m", "here", "x"), {**os.environ, "PYTHONDEVMODE": "1"}
    plain, changed = (
        subprocess.run(command, cwd=tmp_path, env=given, capture_output=True, text=True, timeout=120).stdout
        for given in (None, environment)
    )
    assert (plain, changed) == ("__main__ ['x'] False\n", "__main__ ['x'] True\n")


def waiting(folder: Path) -> tuple[subprocess.Popen[str], Any, int]:
    (folder / "wait.py").write_text(WAIT)
    process = subprocess.Popen(program(folder / "wait.py"), stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, process.stdout, int(process.stdout.readline())


def test_a_signal_reaches_it_and_tells_how_it_ended(tmp_path: Path) -> None:
    process, stdout, _ = waiting(tmp_path)
    with process:
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == -signal.SIGTERM
        assert stdout.read() == ""


def test_it_is_killed_with_its_launcher(tmp_path: Path) -> None:
    process, stdout, pid = waiting(tmp_path)
    with process:
        process.kill()
        assert stdout.read() == "", "its end of the pipe is closed when it has ended"
    pause = threading.Event()
    for _ in range(6000):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        pause.wait(0.02)
    raise AssertionError("it lives on")
