"""Pages of the documentation, run with a model on loopback."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

from tests.adapters.venvs import ROOT

if TYPE_CHECKING:
    from pathlib import Path

TOTAL = "It is 460500."
"""What the pages' question comes to."""
PAGE_SECONDS = 300
"""Enough on a machine that has much else to do."""


def run_page(name: str, python: Path | str = sys.executable) -> str:
    """What the code of `docs/frameworks/<name>.md` prints."""
    command = [str(python), str(ROOT / "tests" / "adapters" / "page.py"), f"docs/frameworks/{name}.md"]
    offline = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    done = subprocess.run(
        command, cwd=ROOT, env=offline, capture_output=True, text=True, timeout=PAGE_SECONDS, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
