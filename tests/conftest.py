"""Settings for all tests."""

from __future__ import annotations

import gc
import os
import signal
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

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
    "tests/durable/test_crashes",
    "tests/project/test_recovering_servers",
    "tests/sandbox/test_dropped",
    "tests/adapters/test_",
    "tests/conformance/",
    "tests/release/",
    "tests/mcp/test_mcp_conformance",
    "tests/mcp/test_mcp_login",
    "tests/console/",
    "tests/attacks/",
    "tests/mcp/",
    "tests/cli/",
    "tests/docs/",
    "tests/sandbox/test_order",
    "tests/costs/",
)
"""Files are given out in this order, so that no process is left with a long one while the others have ended."""


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
