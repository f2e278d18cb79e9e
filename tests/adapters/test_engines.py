"""Scripts inside the workflows of other engines: the examples, killed in the middle and recovered."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

from tests.adapters.venvs import ENGINES, ROOT, check_inside, run_in
from tests.environments import INSTALL_SECONDS
from tests.long import only_long

if TYPE_CHECKING:
    from pathlib import Path

DBOS = "examples/engines/dbos_workflow.py"


@only_long
@pytest.mark.timeout(INSTALL_SECONDS)
@pytest.mark.parametrize("batch", [1, 2, 3])
def test_a_dbos_workflow_goes_on_after_a_crash(batch: int, tmp_path: Path) -> None:
    payments = tmp_path / "payments.txt"
    done = run_in("engines", ENGINES, "tests/adapters/killed.py", str(batch), str(ROOT / DBOS), cwd=tmp_path)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert len(payments.read_text().splitlines() if payments.exists() else []) == batch - 1
    done = run_in("engines", ENGINES, DBOS, cwd=tmp_path)
    assert (done.returncode, done.stdout.splitlines()[-1:]) == (0, ["paid: 3300 cents"]), done.stderr
    assert payments.read_text() == "2 1400\n3 1900\n"  # each exactly once


@pytest.mark.timeout(INSTALL_SECONDS)
def test_a_temporal_workflow() -> None:
    check_inside("engines", ENGINES, "inside_temporal.py")
