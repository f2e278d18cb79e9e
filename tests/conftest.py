"""Settings for all tests."""

from __future__ import annotations

import gc
import os
import signal
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from _pytest.runner import runtestprotocol

from tests.environments import trust_nobody_elsewhere
from tests.long import times

if TYPE_CHECKING:
    from collections.abc import Iterator

pytest.register_assert_rewrite("tests.script_cases")

# Tests make their own projects and agree to them; those of the question itself take this away.
os.environ.setdefault("MOONBOX_TRUST", "1")

trust_nobody_elsewhere()

# How long an example takes says something of the machine, and nothing of the code.
if find_spec("hypothesis"):  # environments of frameworks do without it
    from hypothesis import HealthCheck, settings

    settings.register_profile(
        "any machine", max_examples=times(100), deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )
    settings.load_profile("any machine")

# In the background a shell's jobs ignore Ctrl-C, and so would every program that the tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

LONGEST_FIRST = (
    "tests/adapters/test_",
    "tests/http_api/test_schema",
    "tests/mcp/test_mcp_conformance",
    "tests/mcp/test_mcp_login",
    "tests/console/",
    "tests/attacks/",
    "tests/mcp/",
    "tests/cli/",
    "tests/docs/",
    "tests/release/",
    "tests/costs/",
)
"""Files are given out in this order, so that no process is left with a long one while the others have ended."""


def pytest_configure(config: pytest.Config) -> None:
    """Let each of several processes begin with other files: what one has compiled, the others read."""
    worker: dict[str, object] = getattr(config, "workerinput", {})
    if worker:
        config.pluginmanager.register(_ShortReports())
    tests = Path(__file__).parent
    if worker and [Path(argument).absolute() for argument in config.args] == [tests]:
        parts = sorted(path for path in tests.iterdir() if (path / "__init__.py").is_file() or path.match("test_*.py"))
        first = len(parts) * int(str(worker["workerid"]).removeprefix("gw")) // int(str(worker["workercount"]))
        config.args = [str(path) for path in parts[first:] + parts[:first]]


class _ShortReports:
    """Sends only the reports that are printed: each of the others costs both processes as much as a small test."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        for report in runtestprotocol(item, log=False, nextitem=nextitem):
            if report.when == "call" or not report.passed:
                item.ihook.pytest_runtest_logreport(report=report)
        return True


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: _place(item.nodeid))


def _place(nodeid: str) -> tuple[int, str]:
    """The same in every process, whatever it has collected first."""
    rank = next((rank for rank, prefix in enumerate(LONGEST_FIRST) if nodeid.startswith(prefix)), len(LONGEST_FIRST))
    return rank, nodeid.partition("::")[0]


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """Take what collecting made out of the garbage collector's sight: a pass over it takes longer than most tests."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()
