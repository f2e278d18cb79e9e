"""A short, seeded round of the fuzzing of the C parts as they are installed; `make sanitize` adds the sanitizers."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec

import pytest

from tests.long import times


@pytest.mark.skipif(find_spec("moonbox.worker._native") is None, reason="the native part is not built here")
def test_random_frames_and_scripts_do_no_harm() -> None:
    command = [sys.executable, "-m", "tests.costs.native", "--sessions", f"{times(25)}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"{times(25)} workers, ")
